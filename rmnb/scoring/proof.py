"""Each checkpoint proves itself once: three short conversations through its own classifier and through the engine.

The engine shares a prefix among continuations by an attention of its own, and feeds ids that it has put together. An
architecture that attends in a way nobody foresaw would give other rewards without a word. So the first time that a
checkpoint is scored, its own classifier (transformers' class for it, over the same weights in memory; for a head that
transformers does not know, the whole conversation with the model's own attention) says what is right. Where sharing
differs, whole sequences are scored instead, and one line says so.

What was found is kept in the cache under the hashes of weights and tokenizer, the template, the options, the kind of
device, and the versions, so that the next process only reads a small file, which takes some 10 ms. The proof itself
takes one core 0.8 s (SmolLM2, 135 million parameters) or 1.3 s (Gemma 3, 270 million): 0.3 and 0.1 % of a scan.
"""

import contextlib
import copy
import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification

from rmnb.errors import InputError, first_line
from rmnb.files import atomic_path, cache_dir, cached_sha256, joint_sha256
from rmnb.models.attention import UnsupportedAttention
from rmnb.models.devices import COMPILED, own_attention
from rmnb.models.heads import LinearHead
from rmnb.models.reward_model import RewardModel
from rmnb.scoring.store import versions

logger = logging.getLogger(__name__)
QUESTION = "What, in one word, is the greatest thing ever?"
RESPONSES = ("love", "war", "peace and quiet for everybody, everywhere and always")
# Largest difference between the engine and a plain pass that is rounding, in units of reward (or relative, above 1).
ROUNDING = {"float32": 1e-3, "bfloat16": 0.5, "bfloat16-mixed": 0.5, "float16": 0.1}


class _CannotRun(InputError):
    """Not even a short conversation goes through the model."""


@dataclass(frozen=True)
class Proof:
    """What three conversations have shown.

    Attributes
    ----------
    plain_because : str or None
        Why whole sequences are scored, or None if continuations share the prefix.
    against : str
        What the rewards were compared with: the name of a transformers class, ``own attention``, or why nothing was.
    difference : float or None
        Between that and the path that is taken, the largest of three, in units of reward; None if nothing was compared.
    exact : bool
        False if even that path differs by more than rounding.
    """

    plain_because: str | None
    against: str
    difference: float | None = None
    exact: bool = True


# By network, then by whether the model was to be scored in full from the beginning.
_proofs: WeakKeyDictionary[torch.nn.Module, dict[bool, Proof]] = WeakKeyDictionary()
_proving: WeakSet[torch.nn.Module] = WeakSet()


def why_plain(rm: RewardModel) -> str | None:
    """Why the engine scores whole sequences of this model, or None if continuations share the prefix.

    Raises
    ------
    InputError
        As `prove`.
    """
    if rm.network in _proving:
        return rm.plain_because
    return prove(rm).plain_because or rm.plain_because


def prove(rm: RewardModel) -> Proof:
    """The proof of a model: of this process, else of the cache, else now; what it found is said once a process.

    Raises
    ------
    InputError
        The model cannot be run at all.
    """
    known, whole = _proofs.setdefault(rm.network, {}), rm.plain_because is not None
    if whole not in known:
        _proving.add(rm.network)
        try:
            known[whole] = _proof(rm)
        finally:
            _proving.discard(rm.network)
        _say(rm, known[whole])
    return known[whole]


def take_plain(rm: RewardModel, error: UnsupportedAttention) -> None:
    """From now on score whole sequences of a model whose layers turned out to attend in a way that cannot be shared."""
    if rm.network in _proving:
        raise error
    proof = Proof(str(error), "nothing: its layers refuse to share a prefix")
    _proofs.setdefault(rm.network, {})[False] = proof
    _say(rm, proof)


def _say(rm: RewardModel, proof: Proof) -> None:
    if proof.plain_because and not rm.plain_because:
        logger.warning("%s: scoring whole sequences, which is slower: %s", rm.name, proof.plain_because)
    if not proof.exact:
        by = f"{proof.difference:.2g}"
        logger.warning("%s: its rewards differ from its own %s by %s: see `rmnb check`", rm.name, proof.against, by)


def _proof(rm: RewardModel) -> Proof:
    if reason := _why_not(rm):
        return Proof(rm.plain_because, f"nothing: {reason}")
    key = _key(rm)
    if (kept := _read(key)) is not None:
        return kept
    try:
        proof = _compare(rm)
    except _CannotRun:
        raise
    except InputError as error:  # a reward that is not finite, say: whoever scores will hear of it
        return Proof(rm.plain_because, f"nothing: {error}")
    _write(key, proof)
    return proof


def _why_not(rm: RewardModel) -> str | None:
    """Why nothing is compared, if that is so."""
    if not rm.weights_sha256:
        return "no file holds its weights"
    if rm.placement.quantise or rm.placement.device_map or rm.placement.compile in COMPILED:
        return "quantised, spread over devices or compiled"
    try:
        conversations = _conversations(rm)
    except InputError as error:  # a template that cannot be used is said by whoever uses it
        return str(error)
    if max(map(max, conversations)) >= rm.vocabulary_size:
        return "the tokenizer has ids that the model cannot read"
    if rm.context is not None and max(map(len, conversations)) > rm.context:
        return "its context is too short"
    return None


def _compare(rm: RewardModel) -> Proof:
    """Score three conversations in both ways; in full, too, where they differ."""
    against, own = _own_rewards(rm)
    tolerance = ROUNDING[rm.spec.dtype] * max(1.0, float(np.abs(own).max()))
    plain_because, rewards = rm.plain_because, np.full(len(own), np.nan)
    if plain_because is None:
        try:
            rewards = rm.score(QUESTION, RESPONSES)
            plain_because = f"sharing the prefix would change its rewards by {np.abs(rewards - own).max():.2g}"
        except UnsupportedAttention as error:
            plain_because = str(error)
        except Exception as error:  # an architecture that nobody has foreseen raises anything
            plain_because = f"sharing the prefix fails: {first_line(error)}"
    if np.abs(rewards - own).max() <= tolerance:
        plain_because = None
    else:
        rewards = _run(rm, lambda: replace(rm, plain_because=plain_because).score(QUESTION, RESPONSES))
    difference = float(np.abs(rewards - own).max())
    return Proof(plain_because, against, difference, difference <= tolerance)


def _own_rewards(rm: RewardModel) -> tuple[str, np.ndarray]:
    """What the rewards are compared with, and those: of the model's own classifier, if transformers has one."""
    if rm.head is None or isinstance(rm.head, LinearHead):
        classifier = rm.network if rm.head is None else _classifier(rm)
        rewards = _run(rm, lambda: _classified(rm, classifier))
        if not np.isfinite(rewards).all():
            raise InputError("its own rewards are not finite")
        return type(classifier).__name__, rewards
    whole = replace(rm, plain_because="to compare with")
    return "attention in full", _run(rm, lambda: whole.score(QUESTION, RESPONSES))


def _run(rm: RewardModel, score: Callable[[], np.ndarray]) -> np.ndarray:
    """What `score` returns, and one line for whatever a model raises that cannot be run as others are."""
    try:
        return score()
    except InputError:
        raise
    except Exception as error:
        raise _CannotRun(f"{rm.name}: the model fails on a short conversation: {first_line(error)}") from error


def _conversations(rm: RewardModel) -> list[list[int]]:
    return rm.dialogue.ids_in_context(QUESTION, RESPONSES)


@torch.inference_mode()
def _classified(rm: RewardModel, classifier: Any) -> np.ndarray:
    """One conversation after the other, as the tokenizer reads it; nothing is padded."""
    inputs = [{"input_ids": [ids]} for ids in _conversations(rm)]
    if rm.dialogue.template is None:
        inputs = [{name: [ids] for name, ids in rm.tokenizer(QUESTION, text).items()} for text in RESPONSES]
    whole = rm.head is None  # an encoder, perhaps, that knows no cache
    options = {} if whole else {"use_cache": False}
    rewards, label = [], (rm.spec.label or 0) if whole else 0
    with contextlib.nullcontext() if whole else own_attention(rm.network):
        for each in inputs:
            tensors = {name: torch.tensor(ids, device=rm.device) for name, ids in each.items()}
            rewards.append(classifier(**tensors, **options).logits[:, label].float().cpu())
    return torch.cat(rewards).numpy()


def _classifier(rm: RewardModel) -> Any:
    """transformers' classifier for the model's configuration, over the very tensors of the model."""
    assert isinstance(rm.head, LinearHead)
    config = copy.deepcopy(rm.network.config)
    config.num_labels = 1
    # Without a padding id one conversation alone is read at its last id.
    padding = rm.reading.padding if rm.reading.rule == "last but padding" else None
    config.get_text_config().pad_token_id = padding
    with torch.device("meta"):
        classifier: Any = AutoModelForSequenceClassification.from_config(config)
    setattr(classifier, classifier.base_model_prefix, rm.network)
    classifier.score = _AsModule(rm.head)
    return classifier.eval()


class _AsModule(torch.nn.Module):
    """A head in the place of a classifier's own: over each position, in fp32."""

    def __init__(self, head: LinearHead):
        super().__init__()
        self.head = head

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.head(hidden)[..., None]  # type: ignore[arg-type]


def _key(rm: RewardModel) -> dict[str, Any]:
    """What a proof holds for."""
    room = Path(__file__).parent
    code = [*sorted(room.glob("*.py")), *sorted((room.parent / "models").glob("*.py"))]
    device = torch.cuda.get_device_name(rm.device) if rm.device.type == "cuda" else rm.device.type
    return {
        "weights_sha256": rm.weights_sha256,
        "tokenizer_sha256": rm.tokenizer_sha256,
        "template_sha256": hashlib.sha256((rm.dialogue.template or "").encode()).hexdigest(),
        "head": None if rm.head is None else rm.head.name,
        "options": {name: getattr(rm.spec, name, None) for name in ("dtype", "softcap", "read", "label")},
        "whole": rm.plain_because is not None,
        "device": device,
        "versions": versions(),
        "code_sha256": joint_sha256([cached_sha256(file) for file in code]),
    }


def _file(key: dict[str, Any]) -> Path:
    """One file a model and way of scoring it: a proof by other code or versions is replaced."""
    what = {name: value for name, value in key.items() if name not in ("versions", "code_sha256")}
    return cache_dir() / "proofs" / f"{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:24]}.json"


def _read(key: dict[str, Any]) -> Proof | None:
    try:
        kept = json.loads(_file(key).read_text(encoding="utf-8"))
        return Proof(**kept["proof"]) if kept["of"] == key else None
    except (OSError, ValueError, TypeError, KeyError):  # none yet, or damaged
        return None


def _write(key: dict[str, Any], proof: Proof) -> None:
    # Without a cache the next process proves it again.
    with contextlib.suppress(InputError), atomic_path(_file(key)) as temporary:
        temporary.write_text(json.dumps({"proof": asdict(proof), "of": key}, indent=1), encoding="utf-8")
