"""What a search does: one frozen, checked set of options."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError

from rmnb.errors import InputError
from rmnb.models.vocabulary import SCRIPT_NAMES
from rmnb.panels.specs import Strict

SENTENCE = "I think that love and peace are good for all the people in the world"
Ids = tuple[int, ...]
Start = Annotated[str, Field(min_length=1)]
Allowed = Literal["every", "all", "printable", "words", "ascii", *SCRIPT_NAMES]  # type: ignore[valid-type]


class SearchConfig(Strict):
    """Options of a search; all have defaults.

    Attributes
    ----------
    length
        Tokens of a response, closing ids not counted.
    direction
        ``max`` seeks the optimal, ``min`` the pessimal sequence.
    method
        ``gcg`` (greedy coordinate gradient), or a baseline: ``random``; ``coordinate``, every allowed token at one
        position after the other until nothing improves; ``beam``, growing from the best single tokens.
    steps
        Steps at most: for ``gcg`` and ``random`` batches of `width` candidates, for ``coordinate`` sweeps over one
        position; ``beam`` takes one a position.
    budget
        Sequences to score at most; None for no limit. What methods are to be compared at.
    width
        Candidates of one step.
    topk
        Tokens with the steepest gradient that candidates are drawn from at each position; tokens that extend a beam.
        Doubled each time that one parent is expanded again, so that no parent runs dry.
    swaps
        Positions exchanged at once in the first step, falling to one at the last. Default: half the length.
    explore
        Share of exchanged tokens drawn from all allowed ones instead: the gradient is only a local guide.
    buffer
        Best sequences that stay in play: of each start for ``gcg``, the beam's width for ``beam``.
    starts
        Initial strings: ``random``; ``best_repeated`` and ``best_mixed``, from the best single tokens; or a text, which
        is cut to `length` tokens and repeated where it is too short. ``gcg`` advances all of them in turn and drops the
        worse half after each quarter of the search.
    allowed
        Tokens to choose from: ``every`` id, special ones too; ``all`` but special and reserved ones; ``printable``;
        ``words``; ``ascii``; or the name of a script (`rmnb.models.vocabulary.SCRIPT_NAMES`), printable tokens of that
        script or of none.
    banned
        Ids never used.
    filter_ids
        Whether a sequence must come back as the same ids when its text is an answer in the conversation. If not, the
        result says which do.
    single_tokens
        Tokens scored singly to find the best ones, for a search that is not given a scan.
    keep
        Best sequences to report.
    seed
        The same seed gives the same result.

    Raises
    ------
    InputError
        An option is unknown or out of range: one line that names it.

    Examples
    --------
    >>> SearchConfig(length=2, direction="min").steps
    200
    """

    length: PositiveInt = 8
    direction: Literal["max", "min"] = "max"
    method: Literal["gcg", "random", "coordinate", "beam"] = "gcg"
    steps: PositiveInt = 200
    budget: PositiveInt | None = None
    width: PositiveInt = 256
    topk: PositiveInt = 256
    swaps: PositiveInt | None = None
    explore: float = Field(0.1, ge=0, le=1)
    buffer: PositiveInt = 8
    starts: tuple[Start, ...] = Field((" .", "best_repeated", "best_mixed", SENTENCE, "random"), min_length=1)
    allowed: Allowed = "all"  # pyright: ignore[reportInvalidTypeForm]
    banned: tuple[int, ...] = ()
    filter_ids: bool = True
    single_tokens: PositiveInt = 1024
    keep: PositiveInt = 10
    seed: NonNegativeInt = 0

    def __init__(self, **values):
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(f"search: {first['loc'][0]}: {first['msg']}") from error

    @property
    def sign(self) -> float:
        """What a reward, and its gradient, is multiplied with so that more is better."""
        return 1.0 if self.direction == "max" else -1.0
