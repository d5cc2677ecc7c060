"""What a search does: one frozen, checked set of options."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, ValidationError

from rmnb.errors import InputError
from rmnb.models.vocabulary import SCRIPT_NAMES
from rmnb.panels.specs import Strict

Ids = tuple[int, ...]
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
        ``surrogate``: a Gaussian process, fitted to what is scored, and the gradient of the reward say what is scored
        next; or ``random``.
    steps
        Batches to score at most.
    budget
        Sequences to score at most; None for no limit. What methods are to be compared at.
    width
        Sequences of one batch.
    sample
        Random sequences that ``surrogate`` begins with, and again each time that 32 steps have brought no gain. Each
        beginning forgets what was scored before.
    allowed
        Tokens to choose from: ``every`` id, special ones too; ``all`` but special and reserved ones; ``printable``;
        ``words``; ``ascii``; or the name of a script (`rmnb.models.vocabulary.SCRIPT_NAMES`), printable tokens of that
        script or of none.
    banned
        Ids never used.
    filter_ids
        Whether a sequence must come back as the same ids when its text is an answer in the conversation. If not, the
        result says which do.
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
    100
    """

    length: PositiveInt = 8
    direction: Literal["max", "min"] = "max"
    method: Literal["surrogate", "random"] = "surrogate"
    steps: PositiveInt = 100
    budget: PositiveInt | None = None
    width: PositiveInt = 128
    sample: Annotated[int, Field(ge=2)] = 512
    allowed: Allowed = "all"  # pyright: ignore[reportInvalidTypeForm]
    banned: tuple[int, ...] = ()
    filter_ids: bool = True
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
        """What a reward is multiplied with so that more is better."""
        return 1.0 if self.direction == "max" else -1.0
