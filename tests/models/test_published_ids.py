"""Protocol `published` feeds the very ids that the papers' code fed, on tokenizers built like Llama 3's and Gemma 2's.

The recipe is written out here once more, with nothing but transformers: decode the id, fill the template, tokenise the
string with special tokens, cut.
"""

import numpy as np
import pandas as pd
import pytest
from checkpoints import TEXT, assistant, own_rewards, sentencepiece, tokenizer, user, write_decoder
from head_checkpoints import GEMMA2_TEMPLATE, LLAMA3, LLAMA3_TEMPLATE
from tokenizers import normalizers, processors
from transformers import PreTrainedTokenizerFast

import rmnb
from rmnb.models.dialogue import Dialogue
from rmnb.models.vocabulary import vocabulary

PROMPT = "What, in one word, is the greatest thing ever?"
WORDS = TEXT + " love LOVE Love; he's not, isn't, and they've (so) . what ? yes ! é ü 世界 " * 3


def llama3() -> PreTrainedTokenizerFast:
    """Byte-level BPE that adds BOS; it asks for cleaned-up text and pads with the token that closes a turn."""
    options = dict(clean_up_tokenization_spaces=True, pad_token="<|eot_id|>")
    return tokenizer(LLAMA3_TEMPLATE, LLAMA3, WORDS, **options)


def gemma2() -> PreTrainedTokenizerFast:
    """BPE over text with ``▁`` for spaces and bytes to fall back on; it adds BOS."""
    special = ["<pad>", "<bos>", "<start_of_turn>", "<end_of_turn>"]
    merges = [(word[:end], word[end]) for word in ("▁love", "and▁", ".▁") for end in range(1, len(word))]
    letters = sorted(set(WORDS.replace(" ", "▁").replace("世界", "")))
    pieces = [*(f"<0x{byte:02X}>" for byte in range(256)), *letters, *map("".join, merges)]
    core = sentencepiece(special, pieces, merges)
    core.normalizer = normalizers.Replace(" ", "▁")
    core.post_processor = processors.TemplateProcessing(single="<bos> $A", special_tokens=[("<bos>", 1)])
    named = dict(bos_token="<bos>", pad_token="<pad>", additional_special_tokens=special[2:])
    words = PreTrainedTokenizerFast(tokenizer_object=core, clean_up_tokenization_spaces=False, **named)
    words.chat_template = GEMMA2_TEMPLATE
    return words


def authors_ids(words: PreTrainedTokenizerFast, prompt: str, size: int) -> list[list[int]]:
    """What the papers' code feeds to the model for each id, without the padding."""
    words.clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output = True  # as it was in version 4.43
    conversations = [[user(prompt), assistant(words.decode([i]))] for i in range(size)]
    strings = words.apply_chat_template(conversations, tokenize=False)
    limited = words.model_max_length < 10**20
    return words(strings, truncation=limited)["input_ids"]


@pytest.fixture(params=[llama3, gemma2])
def build(request):
    return request.param


@pytest.fixture
def rm(build, tmp_path):
    words = build()
    write_decoder(tmp_path, "gemma2" if build is gemma2 else "llama", rows=len(words) + 3)
    words.save_pretrained(tmp_path)
    return rmnb.load_reward_model(tmp_path)


def test_every_id_is_fed_as_the_papers_code_fed_it(rm, build):
    words = vocabulary(rm.tokenizer, len(rm.tokenizer))
    fed = rm.dialogue.published_ids(PROMPT, words["token"].map(rm.dialogue.published_token).tolist())
    assert fed == authors_ids(build(), PROMPT, len(rm.tokenizer))
    assert len(set(map(tuple, fed))) < len(words)  # the recipe's traps: spaces and bytes are lost, BOS is doubled
    assert all(ids[:2] == [rm.tokenizer.bos_token_id] * 2 for ids in fed)


def test_a_limit_of_the_tokenizer_cuts_the_conversation(build):
    words = build()
    words.model_max_length = 12
    fed = authors_ids(words, PROMPT, 5)
    texts = [words.decode([i]) for i in range(5)]
    assert Dialogue(words, words.chat_template).published_ids(PROMPT, texts) == fed
    assert {len(ids) for ids in fed} == {12}


def test_scores_of_the_published_ids_are_those_of_the_plain_model(rm, build, tmp_path):
    """One forward pass an id, unpadded, against the scan; ids that are fed alike get one score."""
    scan = rmnb.scan_vocabulary(rm, PROMPT, protocol="published")
    fed = authors_ids(build(), PROMPT, len(rm.tokenizer))
    distinct = {tuple(ids) for ids in fed}
    assert scan.attrs["provenance"]["sequences"] <= len(distinct) + 1  # ids beyond the tokenizer: one empty response
    by_ids = pd.Series(scan["score"][: len(fed)].to_numpy()).groupby([str(ids) for ids in fed])
    assert (by_ids.nunique() == 1).all()
    np.testing.assert_allclose(scan["score"][: len(fed) : 37], own_rewards(tmp_path, fed[::37]), atol=1e-4)


def test_soft_capping_can_be_left_out_and_the_scan_says_so(tmp_path):
    """As a plain model of the same weights whose configuration has no cap."""
    capped = write_decoder(tmp_path / "capped", "gemma2")
    plain = write_decoder(tmp_path / "plain", "gemma2", shape={"attn_logit_softcapping": None})
    on, off, never = (
        rmnb.scan_vocabulary(rmnb.load_reward_model(directory, softcap=softcap), PROMPT, limit=40)
        for directory, softcap in ((capped, True), (capped, False), (plain, True))
    )
    assert (off["score"] == never["score"]).all()
    assert (on["score"] - never["score"]).abs().max() > 1e-3
    assert [scan.attrs["provenance"]["softcap"] for scan in (off, on)] == [False, True]
