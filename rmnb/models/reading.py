"""Where in a conversation a reward is read: the rule of the code that a checkpoint was trained with.

Each rule is what that code does with one conversation that is not padded. Sources, read for the rules only:
``GenericForSequenceClassification.forward`` (transformers 5) for plain classifiers; OpenRLHF's ``RewardModel.forward``
and ``rewardbench/models/grm.py`` (allenai/reward-bench), which go by the attention mask, so that an unpadded
conversation is read at its last id; ``rewardbench/models/qrm.py``, ``rewardbench/models/inform.py`` and public copies
of ArmoRM's ``modeling_custom.py``, which look for the first padding id as transformers did in 2024. URM's own code
could not be read: it is of that year, and is taken to do the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Rule = Literal["last", "last but padding", "before padding", "own"]
# All others look for the first padding id, as transformers did in 2024.
_BY_HEAD: dict[str, Rule] = {
    "linear": "last but padding",
    "linear-normalised": "last",
    "value-head": "last",
    "urm-plain": "last but padding",
}


@dataclass(frozen=True)
class Reading:
    """At which id a reward is read.

    Attributes
    ----------
    rule
        ``last``: the conversation's last id. ``last but padding``: its last id that is not the padding id.
        ``before padding``: the one before its first padding id. ``own``: a whole classifier sees to it.
    padding
        The padding id of the configuration, if the rule knows one.
    """

    rule: Rule = "last"
    padding: int | None = None

    def end(self, prefix: Sequence[int], ids: Sequence[int]) -> int:
        """How many ids of prefix + ids count, at least one: the reward is read at the last of these."""
        whole = [*prefix, *ids]
        if self.rule in ("last", "own") or self.padding not in whole:
            return len(whole)
        if self.rule == "before padding":  # with padding in the first place, too, that code reads the last id
            return whole.index(self.padding) or len(whole)
        last = len(whole)
        while last > 1 and whole[last - 1] == self.padding:
            last -= 1
        return last

    def truncated(self, prefix: Sequence[int], ids: Sequence[int]) -> tuple[int, ...]:
        """The ids after the prefix that can matter to the reward, at least one: what follows the place is dropped."""
        return tuple(ids[: max(1, self.end(prefix, ids) - len(prefix))])


def own_reading(head: str, padding: int | None, settings: Mapping[str, Any]) -> Reading:
    """How the code that a checkpoint comes from reads it.

    Parameters
    ----------
    head
        Name of the head, see `rmnb.models.heads.find_head`.
    padding
        ``pad_token_id`` of the configuration.
    settings
        ``config.json``: OpenRLHF leaves its mark there.
    """
    by_openrlhf = head == "linear" and "value_head_prefix" in settings
    return Reading("last" if by_openrlhf else _BY_HEAD.get(head, "before padding"), padding)
