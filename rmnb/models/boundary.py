"""Where the ids of a conversation end and those of its answer begin, found by probing with many answers."""

from collections import Counter
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

_PROBES = 36
_NEARLY_ALL = 0.95


def probe_words(tokenizer: PreTrainedTokenizerBase) -> list[str]:
    """A few English words, and words of the vocabulary, evenly spread."""
    known = sorted(tokenizer.get_vocab().values())
    tokens = tokenizer.batch_decode([[i] for i in known[:: max(1, len(known) // 1000)]])
    words = list(dict.fromkeys(word for token in tokens if (word := token.strip()).isalpha()))
    return ["love", "War", "a", "the", *words[:: max(1, len(words) // _PROBES)]]


def shared_ends(sequences: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """The ids that conversations begin with in common, and those that they end with; at least one lies between.

    In common to nearly all of them: a rare word may join the template's own punctuation.
    """
    start = _shared(sequences)
    rest = [ids[len(start) + 1 :] for ids in sequences if list(ids[: len(start)]) == start]
    return start, _shared([ids[::-1] for ids in rest])[::-1]


def _shared(sequences: Sequence[Sequence[int]]) -> list[int]:
    shared: list[int] = []
    alike = sequences
    while counts := Counter(ids[len(shared)] for ids in alike if len(ids) > len(shared)):
        ((common, count),) = counts.most_common(1)
        if count < _NEARLY_ALL * len(sequences):
            break
        alike = [ids for ids in alike if len(ids) > len(shared) and ids[len(shared)] == common]
        shared.append(common)
    return shared
