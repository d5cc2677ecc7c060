"""What a model reads: a text as its own template reads it, an id as itself; and the papers' way, traps included."""

import pytest
from checkpoints import TEMPLATE, own_ids, tokenizer, user, write_splitting
from tokenizers import processors
from transformers import AutoTokenizer

import rmnb
from rmnb.models.dialogue import Dialogue
from rmnb.scoring.rows import trace

PROMPT = "What, in one word, is the greatest thing ever?"
TEXTS = ["love", " love", "love\n", " \n war ", "a  b", "line\nline", "🙂 peace", "été 世界", "\tWhat?", ".\n\n"]


@pytest.mark.parametrize("bos", ["template", "post-processor", "both"])
@pytest.mark.parametrize("trims", [False, True])
@pytest.mark.parametrize(("splitting", "opening"), [("metaspace", "blank"), ("byte-level", "newline")])
def test_a_text_is_read_as_the_whole_conversation_in_its_template_is(splitting, opening, trims, bos, tmp_path):
    write_splitting(tmp_path, splitting, opening, "<pad>")
    words = AutoTokenizer.from_pretrained(tmp_path)
    if trims:
        words.chat_template = words.chat_template.replace("['content']", "['content'] | trim")
    if bos != "template":
        bos_id = [("<bos>", words.bos_token_id)]
        words.backend_tokenizer.post_processor = processors.TemplateProcessing("<bos> $A", special_tokens=bos_id)
    if bos == "post-processor":
        words.chat_template = words.chat_template.replace("{{ bos_token }}", "")
    words.save_pretrained(tmp_path)
    rm = rmnb.load_reward_model(tmp_path)
    expected = own_ids(words, PROMPT, TEXTS)
    assert rm.dialogue.conversations(PROMPT, TEXTS) == expected
    rewards = pytest.approx(rm.score(PROMPT, TEXTS), abs=1e-4)
    assert [trace(rm, PROMPT, text)["reward"].iloc[-1] for text in TEXTS] == rewards


def test_the_date_in_a_template_is_frozen():
    dated = Dialogue(tokenizer(), "{{ strftime_now('%d %b %Y') }}{{ date_string }}" + TEMPLATE)
    assert dated.render([user("hi")]).startswith("26 Jul 202426 Jul 2024")
