"""Panels: which reward models, language models and prompts, as YAML files and their checked form.

Entry points: `load_panel`, `load_prompts`, `find_spec`, and the types that they return.
"""

from rmnb.panels.panel import Panel, find_base, find_spec, load_panel
from rmnb.panels.specs import (
    BaseSpec,
    HeadName,
    HeadSpec,
    ImplicitSpec,
    Judge,
    JudgeSpec,
    LogProbabilitySpec,
    ModelSpec,
    PromptSpec,
    Reference,
    load_prompts,
)

__all__ = [
    "BaseSpec",
    "HeadName",
    "HeadSpec",
    "ImplicitSpec",
    "Judge",
    "JudgeSpec",
    "LogProbabilitySpec",
    "ModelSpec",
    "Panel",
    "PromptSpec",
    "Reference",
    "find_base",
    "find_spec",
    "load_panel",
    "load_prompts",
]
