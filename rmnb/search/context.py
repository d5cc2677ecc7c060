"""Does a sequence of ids survive being written as text?

A reward that only exists for ids that no text gives is an artefact. So a sequence must be what the tokenizer makes of
its own text twice: alone, as `rmnb score` reads it, and between the words of its conversation, where a token could
merge with its neighbours or spell a control token.
"""

from collections.abc import Sequence

import numpy as np

from rmnb.models.dialogue import Dialogue, Prompt


def survives(dialogue: Dialogue, prompt: Prompt, sequences: Sequence[Sequence[int]]) -> np.ndarray:
    """Whether each sequence comes back as the same ids, bool [sequences]."""
    if not len(sequences):
        return np.zeros(0, dtype=bool)
    prefix, closing = dialogue.frame(prompt)
    texts = texts_of(dialogue, sequences)
    alone = dialogue.tokenizer(texts, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    within = dialogue.ids_in_context(prompt, texts)
    return np.array(
        [
            list(ids) == one and [*prefix, *ids, *closing] == whole
            for ids, one, whole in zip(sequences, alone, within, strict=True)
        ]
    )


def texts_of(dialogue: Dialogue, sequences: Sequence[Sequence[int]]) -> list[str]:
    """The text of each sequence, as it stands, special tokens by their name."""
    rows = [list(ids) for ids in sequences]
    return dialogue.tokenizer.batch_decode(rows, clean_up_tokenization_spaces=False, skip_special_tokens=False)
