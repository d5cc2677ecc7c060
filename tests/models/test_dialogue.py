"""What a model reads: a text as its own template reads it, an id as itself; and the papers' way, traps included."""

import pytest
from checkpoints import TEMPLATE, own_ids, tokenizer, user, write_splitting
from tokenizers import processors
from transformers import AutoTokenizer

import rmnb
from rmnb.conversation import Conversation
from rmnb.errors import InputError
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


@pytest.mark.parametrize("trainer", ["trl", "openrlhf"])
@pytest.mark.parametrize("date", ["'%d %b %Y'", "f", " '%d' ~ ' %b %Y'", "format=f"])
def test_the_date_in_a_template_is_frozen(date, trainer):
    template = f"{{% set f = '%d %b %Y' %}}{{{{ strftime_now({date}) }}}}{{{{ date_string }}}}{TEMPLATE}"
    dated = Dialogue(tokenizer(), template, trainer)
    assert dated.render([user("hi")]).startswith("26 Jul 202426 Jul 2024<bos>")


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("system prompt", Conversation([{"role": "system", "content": "Be brief."}, user("a")])),
        ("tools", Conversation([user("a")], [{"type": "function", "function": {"name": "water"}}])),
        ("documents", Conversation([user("a")], None, {"documents": [{"text": "b"}]})),
        ("role 'observation'", Conversation([user("a"), {"role": "observation", "content": "b"}])),
    ],
)
def test_what_a_template_would_pass_over_is_refused(part, said):
    template = TEMPLATE.replace("in messages", "in messages if m['role'] != 'system'")
    with pytest.raises(InputError, match=f"the chat template (writes nothing of the|has no) {part}"):
        Dialogue(tokenizer(), template).conversations(said, ["love"])
    names = "{{ tools }}{{ documents }}{# observation #}"
    assert Dialogue(tokenizer(), names + TEMPLATE).conversations(said, ["love"])
