"""Panels: which reward models, language models and prompts, as YAML files and their checked form.

Doors: `load_panel`, `load_prompts`, `find_spec`, and the types that they return.
"""

from rmnb.panels.panel import (
    PANELS,
    Adjective,
    BaseSpec,
    HeadName,
    ModelSpec,
    Panel,
    PromptSet,
    PromptSpec,
    Read,
    Reference,
    Turn,
    Wrapping,
    find_base,
    find_spec,
    load_panel,
    load_prompts,
)

__all__ = [
    "PANELS",
    "Adjective",
    "BaseSpec",
    "HeadName",
    "ModelSpec",
    "Panel",
    "PromptSet",
    "PromptSpec",
    "Read",
    "Reference",
    "Turn",
    "Wrapping",
    "find_base",
    "find_spec",
    "load_panel",
    "load_prompts",
]
