"""Every id is there, and is what it looks like in the tokenizer that made it."""

import numpy as np
import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from rmnb.errors import InputError
from rmnb.models import vocabulary as vocabulary_module
from rmnb.models.vocabulary import KINDS, SCRIPT_NAMES, vocabulary

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
    alphabet = {byte: character for character, byte in vocabulary_module._BYTES.items()}
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
    vocab = {piece: i for i, piece in enumerate([*special, "<0x0A>", "<0xE7>", *pieces])}
    core = tokenizers.Tokenizer(models.BPE(vocab, [], byte_fallback=True, unk_token="<unk>"))
    core.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    core.add_special_tokens(special)
    core.add_tokens([AddedToken("</div>", normalized=False)])
    return PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<eos>", pad_token="<pad>")


@pytest.mark.parametrize("make", [byte_level, sentencepiece])
def test_kind_and_script_of_known_tokens(make):
    tokenizer = make()
    table = vocabulary(tokenizer, len(tokenizer)).set_index("token")
    found = {text: (table.loc[text, "kind"], table.loc[text, "script"]) for text in EXPECTED}
    assert found == EXPECTED


def test_byte_level_parts_of_characters_and_reserved_names():
    tokenizer = byte_level()
    table = vocabulary(tokenizer, len(tokenizer)).set_index("piece")
    alphabet = {byte: character for character, byte in vocabulary_module._BYTES.items()}
    assert table.loc[alphabet[0xE7], "kind"] == "byte"
    assert table.loc[alphabet[0xE7] + alphabet[0x88], "kind"] == "byte"
    assert table.loc[["<|eot_id|>", "<tool_call>"], "kind"].tolist() == ["special", "special"]
    assert table.loc["<|reserved_special_token_3|>", "kind"] == "unused"


def test_sentencepiece_bytes_and_reserved_names():
    tokenizer = sentencepiece()
    table = vocabulary(tokenizer, len(tokenizer)).set_index("piece")
    assert table.loc[["<0x0A>", "<0xE7>"], "kind"].tolist() == ["byte", "byte"]
    assert table.loc["<0x0A>", "token"] == "\n"
    assert table.loc["<start_of_turn>", "kind"] == "special"
    assert table.loc["<unused7>", "kind"] == "unused"


def test_wordpiece_marks_the_continuation():
    vocab = {piece: i for i, piece in enumerate(["[UNK]", "[CLS]", "[unused1]", "love", "##ly", "!"])}
    core = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    core.decoder = decoders.WordPiece()
    core.add_special_tokens(["[UNK]", "[CLS]"])
    kinds = vocabulary(PreTrainedTokenizerFast(tokenizer_object=core, cls_token="[CLS]"), 6)["kind"].tolist()
    assert kinds == ["special", "special", "unused", "word_start", "word_continuation", "punctuation"]


def test_no_id_is_left_out_beyond_the_tokenizer():
    tokenizer = byte_level()
    table = vocabulary(tokenizer, len(tokenizer) + 5)
    assert table["token_id"].dtype == np.int32
    assert table["token_id"].tolist() == list(range(len(tokenizer) + 5))
    assert (table["kind"].tail(5) == "unused").all() and (table["token"].tail(5) == "").all()
    assert table.notna().all(axis=None)
    assert tuple(table["kind"].cat.categories) == KINDS and tuple(table["script"].cat.categories) == SCRIPT_NAMES
    known = table["token"].head(len(tokenizer))
    assert known.tolist() == [tokenizer.decode([i]) for i in range(len(tokenizer))]


def test_size_must_be_positive():
    with pytest.raises(InputError, match="at least one id, not 0"):
        vocabulary(byte_level(), 0)
