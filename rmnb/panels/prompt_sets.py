"""Questions: one by one, or as a set made by a factorial design."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from rmnb.panels.specs import PANELS, FileName, Strict, read

Framing = Literal["positive", "negative"]


class Turn(Strict):
    """One message of a conversation."""

    role: str
    content: str


class PromptSpec(Strict):
    """A question, its key, and whether it asks for something good (positive) or bad (negative).

    `history` is what comes before the question: a system prompt, earlier turns.
    """

    key: FileName
    text: str
    framing: Framing
    history: tuple[Turn, ...] = ()
    scanned: bool = Field(default=True, description="false: asked about lists of texts, never about a whole vocabulary")

    @property
    def conversation(self) -> str | list[dict[str, str]]:
        """What is scored as the prompt: the question alone, or messages that end with it."""
        if not self.history:
            return self.text
        return [*(turn.model_dump() for turn in self.history), {"role": "user", "content": self.text}]


class Adjective(Strict):
    """What a question asks for: the words in the question, and whether that is something good or bad."""

    text: str
    framing: Framing


class PromptSet(Strict):
    """Questions made by a factorial design: each adjective with each scope in each style, in that order of nesting.

    A style is the question with ``{adjective}`` and ``{scope}`` in it. Keys read ``adjective_scope_style``.
    """

    name: str
    title: str
    adjectives: dict[str, Adjective] = Field(min_length=1)
    scopes: dict[str, str] = Field(min_length=1)
    styles: dict[str, str] = Field(min_length=1)

    @property
    def prompts(self) -> tuple[PromptSpec, ...]:
        return tuple(
            PromptSpec(
                key=f"{word}_{scope}_{style}",
                text=question.replace("{adjective}", asked.text).replace("{scope}", where),
                framing=asked.framing,
            )
            for word, asked in self.adjectives.items()
            for scope, where in self.scopes.items()
            for style, question in self.styles.items()
        )


def load_prompts(name: str | Path) -> tuple[PromptSpec, ...]:
    """The prompts of a set that ships with rmnb, by name (``iclr2026``: 54), or of your own YAML, by path.

    Raises
    ------
    InputError
        No such set, not YAML, or a key that is missing, unknown or of the wrong kind (file, key, expectation named).
    """
    return read(PromptSet, name, PANELS / "prompts", "prompt set").prompts
