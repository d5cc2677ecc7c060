"""Search with models: which objective they make."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from rmnb.errors import InputError
from rmnb.models.dialogue import Prompt
from rmnb.models.reward_model import RewardModel
from rmnb.panels import PromptSpec
from rmnb.search.config import SearchConfig
from rmnb.search.fluency import LanguageModel
from rmnb.search.follow import search
from rmnb.search.result import SearchResult
from rmnb.search.rewards import RewardObjective


def optimise(
    rm: RewardModel | Sequence[RewardModel],
    prompt: Prompt | PromptSpec | Sequence[str | PromptSpec],
    config: SearchConfig | None = None,
    scan: pd.DataFrame | None = None,
    language_model: LanguageModel | None = None,
    output: Path | None = None,
    progress: bool = False,
) -> SearchResult:
    """Search for the response with the highest, or the lowest, reward.

    Parameters
    ----------
    rm
        The reward model, or several that share a tokenizer: their mean, or with ``combine="difference"`` the first
        minus the second.
    prompt
        The question, or several: rewards are averaged over them. A list of chat messages is one question.
    config
        Options.
    scan
        A scan of the vocabulary with the same model and prompt (columns token_id and score): where the best single
        tokens are taken from, instead of scoring a sample.
    language_model
        Needed for, and only used by, a fluency term. Default: the model's own base.
    output
        Where the caller will write the result. With it, what is scored is logged beside that file; called again after
        an interruption, the search goes on and ends the same. `Log.discard` removes it.
    progress
        Show a line with the best reward and its text.

    Returns
    -------
    SearchResult

    Raises
    ------
    InputError
        Models of different tokenizers, a difference of other than two, no token or no sequence allowed, a reward that
        is not finite, a log of another search at `output`.
    """
    config = config or SearchConfig()
    models = [rm] if isinstance(rm, RewardModel) else list(rm)
    if config.combine == "difference":
        if len(models) != 2:
            raise InputError(f"a difference takes two models, not {len(models)}")
        weighted = [(models[0], 1.0), (models[1], -1.0)]
    else:
        weighted = [(model, 1 / len(models)) for model in models]
    if config.fluency and language_model is None:
        base = models[0].spec.base
        if base is None:
            raise InputError(f"{models[0].name} names no base: a fluency term needs a language_model")
        language_model = LanguageModel.load(base, models[0].device)
    objective = RewardObjective(
        weighted, _prompts(prompt), language_model if config.fluency else None, config.batch_size
    )
    return search(objective, config, scan, output, progress)


def _prompts(prompt: Prompt | PromptSpec | Sequence[str | PromptSpec]) -> list[Prompt]:
    """A question, or several, as a list."""
    if isinstance(prompt, (str, PromptSpec)):
        several: list = [prompt]
    else:
        several = [prompt] if prompt and isinstance(prompt[0], dict) else list(prompt)
    if not several:
        raise InputError("no prompt given: name at least one")
    return [one.text if isinstance(one, PromptSpec) else one for one in several]
