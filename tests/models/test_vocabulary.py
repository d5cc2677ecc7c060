"""Every id is there, and is what it looks like in the tokenizer that made it."""

import checkpoints
import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
from transformers.convert_slow_tokenizer import bytes_to_unicode

from rmnb.models.vocabulary import vocabulary

EXPECTED = {  # the same tokens in every tokenizer that can spell them
    " love": ("word_start", "latin"),
    "love": ("word_continuation", "latin"),
    " don't": ("word_start", "latin"),
    " naïve": ("word_start", "latin"),
    " McMahon": ("word_start", "latin"),
    " любовь": ("word_start", "cyrillic"),
    "爱": ("word_continuation", "han"),
    " 사랑": ("word_start", "hangul"),
    "ार": ("word_continuation", "devanagari"),
    " μg": ("word_start", "mixed"),
    "!": ("punctuation", "none"),
    ' "': ("punctuation", "none"),
    "----": ("punctuation", "none"),
    "🎄": ("punctuation", "none"),
    "\uf03e": ("punctuation", "none"),
    " 2024": ("number", "none"),
    "½": ("number", "none"),
    "\n\n": ("whitespace", "none"),
    "   ": ("whitespace", "none"),
    "\u200b": ("whitespace", "none"),
    "getElement": ("code", "latin"),
    " snake_case": ("code", "latin"),
    "</div>": ("code", "latin"),
    "();": ("code", "none"),
    " !==": ("code", "none"),
    ".com": ("code", "latin"),
}


def byte_level() -> PreTrainedTokenizerFast:
    alphabet = bytes_to_unicode()
    pieces = ["".join(alphabet[byte] for byte in text.encode()) for text in EXPECTED]
    vocab = {
        piece: i for i, piece in enumerate(dict.fromkeys([*pieces, alphabet[0xE7], alphabet[0xE7] + alphabet[0x88]]))
    }
    core = tokenizers.Tokenizer(models.BPE(vocab, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(["<|eot_id|>", "<|reserved_special_token_3|>"])
    core.add_tokens(["<tool_call>"])  # Qwen does not say that this one is special
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|eot_id|>")


def sentencepiece() -> PreTrainedTokenizerFast:
    pieces = [text.replace(" ", "▁") for text in EXPECTED]
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<start_of_turn>", "<unused7>"]
    core = checkpoints.sentencepiece(special, ["<0x0A>", "<0xE7>", *pieces], unk_token="<unk>")
    core.add_tokens([AddedToken("</div>", normalized=False)])
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<eos>", pad_token="<pad>")


LOVE = bytes_to_unicode()[0xE7], bytes_to_unicode()[0xE7] + bytes_to_unicode()[0x88]  # the beginning of 爱
OTHERS = {
    byte_level: {
        "byte": LOVE,
        "special": ["<|eot_id|>", "<tool_call>"],
        "unused": ["<|reserved_special_token_3|>"],
    },
    sentencepiece: {"byte": ["<0x0A>", "<0xE7>"], "special": ["<start_of_turn>"], "unused": ["<unused7>"]},
}


@pytest.mark.parametrize("make", OTHERS)
def test_kind_and_script_of_known_tokens(make):
    tokenizer = make()
    table = vocabulary(tokenizer, len(tokenizer))
    found = table.set_index("token").loc[list(EXPECTED), ["kind", "script"]]
    assert dict(zip(EXPECTED, map(tuple, found.to_numpy()), strict=True)) == EXPECTED
    kinds = table.set_index("piece")["kind"]
    assert all(kinds[piece] == kind for kind, pieces in OTHERS[make].items() for piece in pieces)


def test_wordpiece_marks_the_continuation():
    vocab = {piece: i for i, piece in enumerate(["[UNK]", "[CLS]", "[unused1]", "love", "##ly", "!"])}
    core = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    core.decoder = decoders.WordPiece()
    core.add_special_tokens(["[UNK]", "[CLS]"])
    kinds = vocabulary(PreTrainedTokenizerFast(tokenizer_object=core, cls_token="[CLS]"), 6)["kind"].tolist()
    assert kinds == ["special", "special", "unused", "word_start", "word_continuation", "punctuation"]
