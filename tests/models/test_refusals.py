"""What is wrong with a checkpoint, an adapter or an option is one line that names it; nothing pickled is opened."""

import shutil

import pytest
import torch
from checkpoints import edit, edit_tensors, write_base, write_decoder, write_encoder
from peft import PromptTuningConfig, get_peft_model
from safetensors.torch import save_file
from trained import write_adapter
from transformers import AutoModelForSequenceClassification

import rmnb
from rmnb.errors import InputError

WEIGHTS, ADAPTER = "model.safetensors", "adapter_model.safetensors"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:" + "0" * 64 + "\nsize 9\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A directory with a decoder, an encoder, and an adapter beside its base."""
    root = tmp_path_factory.mktemp("whole")
    write_decoder(root / "decoder")
    write_encoder(root / "encoder")
    write_adapter(write_base(root / "base"), root / "adapter")
    return root


def tensors(change, name=WEIGHTS):
    return lambda directory: edit_tensors(directory, change, name)


def drop(part):
    return tensors(lambda found: {key: found[key] for key in found if part not in key}, ADAPTER)


def settings(name, **changes):
    return lambda directory: edit(directory / name, **changes)


def write(name, content):
    return lambda directory: (directory / name).write_bytes(content)


def remove(name):
    return lambda directory: [file.unlink() for file in directory.glob(name)]


def move(old, new):
    return lambda directory: (directory / old).rename(directory / new)


def in_base(spoil):
    return lambda adapter: spoil(adapter.with_name("base"))


def another_base(**shape):
    return lambda adapter: write_base(adapter.with_name("base"), shape=shape)


def tune_prompt(adapter):
    model = AutoModelForSequenceClassification.from_pretrained(adapter.with_name("base"), num_labels=1)
    asked = PromptTuningConfig(task_type="SEQ_CLS", num_virtual_tokens=2)
    get_peft_model(model, asked).save_pretrained(adapter)


HEAD_FILE = {"v_head.summary.weight": torch.ones(1, 32)}
FILES = {  # of whole models of either kind
    "weights that git-lfs has not fetched": (write(WEIGHTS, POINTER.encode()), "git lfs pull"),
    "another vocabulary": (settings("config.json", vocab_size=382), r"embed\w+.weight \[318, 32\], not \[382, 32\]$"),
    "no tokenizer": (remove("tokenizer*"), "no tokenizer: save it beside the weights"),
    "no configuration": (remove("config.json"), r"no config\.json"),
    "pickled weights": (move(WEIGHTS, "last.ckpt"), r"only pickled weights \(last.ckpt\), which can run code"),
}
DECODER = {
    "a renamed tensor": (
        tensors(lambda found: {key.replace("1.mlp.up", "1.other"): found[key] for key in found}),
        "the weights lack layers.1.mlp.up_proj.weight",
    ),
    "a tensor too many": (
        tensors(lambda found: found | {"gating.weight": torch.zeros(2)}),
        'no known kind; nearest is linear: Unexpected .*"gating.weight"',
    ),
    "no template": (remove("chat_template.jinja"), "has no chat template"),
    "a pickled head": (lambda of: torch.save(HEAD_FILE, of / "value_head.bin"), "value_head.bin.*convert"),
    "pickled weights beside a head": (
        lambda of: (save_file(HEAD_FILE, of / "value_head.safetensors"), move(WEIGHTS, "pytorch_model.bin")(of)),
        r"only pickled weights \(pytorch_model.bin\)",
    ),
}
OF_ADAPTER = {
    "a pickled base": (in_base(move(WEIGHTS, "pytorch_model.bin")), r"base: .*only pickled weights"),
    "a quantised base": (
        in_base(settings("config.json", quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True})),
        r"is quantised: an adapter is merged into unquantised weights: .*--base",
    ),
    "a base of another size": (another_base(hidden_size=64), r"does not fit its base \S+/base: .*\[1, 32\].*\[1, 64\]"),
    "a base of fewer layers": (another_base(num_hidden_layers=2), r"nowhere in its base \S+/base: .*layers.2.mlp.down"),
    "no name of a base": (settings("adapter_config.json", base_model_name_or_path=7), "name it with --base"),
    "a base that is gone": (lambda of: shutil.rmtree(of.with_name("base")), "its base:.*--base"),
    "a token classifier's": (settings("adapter_config.json", task_type="TOKEN_CLS"), "a process reward model .PRM."),
    "a tuned prompt": (tune_prompt, "an adapter of kind .*PROMPT_TUNING, which cannot be merged"),
    "a damaged head": (write("value_head.safetensors", b"x"), "value_head.safetensors: damaged or cut short"),
    "no head": (drop("score"), "no head: neither .* has score.weight: PEFT saves it where"),
    "half a pair": (drop("q_proj.lora_B"), "the adapter lacks"),
}
CASES = [
    *[("encoder", what, *case) for what, case in FILES.items()],
    *[("decoder", what, *case) for what, case in DECODER.items()],
    *[("adapter", what, *case) for what, case in OF_ADAPTER.items()],
]


def refused(directory, match, capfd, **options):
    capfd.readouterr()
    with pytest.raises(InputError, match=match) as raised:
        rmnb.load_reward_model(directory, **{"device": "cpu", **options})
    assert "\n" not in str(raised.value)
    assert capfd.readouterr() == ("", "")  # no library says it in its own way, too


@pytest.mark.parametrize(("kind", "what", "spoil", "match"), CASES, ids=[" ".join(case[:2]) for case in CASES])
def test_a_wrong_checkpoint_is_one_line(kind, what, spoil, match, whole, tmp_path, capfd):
    for name in ("base", "adapter") if kind == "adapter" else (kind,):
        shutil.copytree(whole / name, tmp_path / name)
    if kind == "adapter":
        settings("adapter_config.json", base_model_name_or_path=str(tmp_path / "base"))(tmp_path / kind)
    spoil(tmp_path / kind)
    refused(tmp_path / kind, match, capfd)


@pytest.mark.parametrize(
    ("kind", "options", "match"),
    [
        ("decoder", {"device": "cuda:99"}, "device cuda:99: "),
        ("decoder", {"device_map": "everywhere"}, "device_map.*everywhere"),
        ("decoder", {"quantization_config": {"load_in_8bit": True}}, "bitsandbytes"),
        ("decoder", {"dtype": "int3"}, "dtype: .*'float32'"),
        ("decoder", {"softcap": False}, "no soft-capping that could be switched off"),
        ("decoder", {"head": "urm"}, 'no urm kind; nearest is urm: Missing .*"weights.fc.0.bias"'),
        ("decoder", {"trust_remote_code": True}, "trust_remote_code"),
        ("decoder", {"revision": "v1"}, "no option revision: name the checkpoint itself"),
        ("adapter", {"device_map": "auto"}, "is an adapter, merged when it is loaded: it takes no device_map"),
    ],
)
def test_a_wrong_option_is_one_line(kind, options, match, whole, capfd):
    refused(whole / kind, match, capfd, **options)


@pytest.mark.parametrize("model", [torch.nn.Linear(1, 1), None])
def test_what_is_no_model_is_one_line(model, capfd):
    refused(model, "^unknown model", capfd)
