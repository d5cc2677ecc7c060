"""Panels: which reward models, language models and prompts, as YAML files and their checked form.

Doors: `load_panel`, `load_prompts`, `find_spec`, and the types that they return.
"""

from rmnb.panels.form import PANELS
from rmnb.panels.panel import Panel, find_base, find_spec, load_panel
from rmnb.panels.prompt_sets import Adjective, PromptSet, PromptSpec, Turn, load_prompts
from rmnb.panels.specs import BaseSpec, HeadName, ModelSpec, Read, Reference, Wrapping

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
