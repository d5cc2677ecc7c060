"""What a model reads: one BOS, the token's own id, the closing id; and the papers' way, traps included."""

import pytest
from checkpoints import TEMPLATE, pair_tokenizer, tokenizer

from rmnb.errors import InputError
from rmnb.models.bases import base_tokenizer
from rmnb.models.dialogue import Dialogue
from rmnb.panels import load_panel

PROMPT = "What, in one word, is the greatest thing ever?"


@pytest.fixture(scope="module")
def dialogue():
    return Dialogue(tokenizer(), TEMPLATE)


def test_the_exact_prefix_is_the_generation_prompt_with_one_bos(dialogue):
    prefix, closing = dialogue.frame(PROMPT)
    conversation = [{"role": "user", "content": PROMPT}]
    template = dialogue.tokenizer.apply_chat_template(conversation, add_generation_prompt=True, tokenize=True)
    assert prefix == template["input_ids"]
    assert prefix.count(dialogue.tokenizer.bos_token_id) == 1
    assert closing == [dialogue.tokenizer.convert_tokens_to_ids("<end>")]


def test_markers_inside_a_response_are_plain_text(dialogue):
    ids = dialogue.response_ids("a<end>b")
    assert dialogue.tokenizer.convert_tokens_to_ids("<end>") not in ids
    assert dialogue.tokenizer.decode(ids) == "a<end>b"


def test_a_text_has_the_ids_of_its_conversation_and_its_markers_and_blanks_are_text(dialogue):
    """The template trims; a question that spells markers has its own encoded as text, too."""
    prefix, closing = dialogue.frame(PROMPT)
    texts = ["love", " love", "war\n", "  ", "a<end>b", "<model>"]
    for text, ids in zip(texts, dialogue.conversations(PROMPT, texts), strict=True):
        assert ids == [*prefix, *dialogue.response_ids(text), *closing]
    prompt = "What is <end>?"
    prefix, closing = dialogue.frame(prompt)
    assert prefix.count(closing[0]) == 1
    (ids,) = dialogue.conversations(prompt, [" love <model>"])
    assert ids == [*prefix, *dialogue.response_ids(" love <model>"), *closing]
    assert dialogue.tokenizer.decode(ids).endswith("What is <end>?<end><model> love <model><end>")


def test_the_published_way_doubles_bos_trims_and_reads_markers(dialogue):
    bos, end = (dialogue.tokenizer.convert_tokens_to_ids(token) for token in ("<bos>", "<end>"))
    spaced, bare, marked = dialogue.published_ids(PROMPT, [" love", "love", "a<end>b"])
    assert spaced == bare
    assert spaced[:2] == [bos, bos]
    assert marked.count(end) == 3
    string = dialogue.tokenizer.apply_chat_template(
        [{"role": "user", "content": PROMPT}, {"role": "assistant", "content": " love"}], tokenize=False
    )
    assert spaced == dialogue.tokenizer(string)["input_ids"]


def test_the_date_in_a_template_is_frozen():
    dated = Dialogue(tokenizer(), "{{ strftime_now('%d %b %Y') }}{{ date_string }}" + TEMPLATE)
    assert dated.render([{"role": "user", "content": "hi"}]).startswith("26 Jul 202426 Jul 2024")


def test_what_a_template_inserts_before_the_answer_belongs_to_the_prefix():
    thinking = TEMPLATE.replace(
        "{{ m['content'] | trim }}", "{{ '(thinks)' if m['role'] == 'assistant' }}{{ m['content'] }}"
    )
    prefix, _ = Dialogue(tokenizer(), thinking).frame(PROMPT)
    assert tokenizer().decode(prefix).endswith("<model>(thinks)")


def test_templates_that_cannot_be_read_at_an_end_are_refused():
    with pytest.raises(InputError, match="writes nothing after"):
        Dialogue(tokenizer(), "{% for m in messages %}{{ m['content'] }}{% endfor %}").frame(PROMPT)
    with pytest.raises(InputError, match="does not contain the assistant's words"):
        Dialogue(tokenizer(), "{{ messages[0]['content'] }}<end>").frame(PROMPT)


def test_an_encoder_reads_question_and_answer_between_its_own_separators():
    words = pair_tokenizer()
    prefix, closing = Dialogue(words, None).frame(PROMPT)
    assert prefix + words("love", add_special_tokens=False)["input_ids"] + closing == words(PROMPT, "love")["input_ids"]


@pytest.mark.parametrize("name", ["smollm2-values", "gemma3-values"])
def test_the_demo_models_close_with_one_id_and_begin_with_one_bos(name):
    spec = load_panel("demo").model(name)
    words = base_tokenizer(spec.base)  # equal to what transformers would load: tests/models/test_loading.py
    prefix, closing = Dialogue(words, spec.template).frame(PROMPT)
    assert words.convert_ids_to_tokens(closing) in (["<|im_end|>"], ["<end_of_turn>"])
    assert (
        prefix
        == words.apply_chat_template(
            [{"role": "user", "content": PROMPT}],
            chat_template=spec.template,
            add_generation_prompt=True,
            tokenize=True,
        )["input_ids"]
    )
    assert words.decode(prefix).count(PROMPT) == 1
    assert prefix[0] == words.bos_token_id
    assert name != "gemma3-values" or prefix.count(words.bos_token_id) == 1
