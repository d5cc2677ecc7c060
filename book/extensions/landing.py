"""What the first page shows, made when the book is built: key figure, verdicts, thumbnails, preview image.

Everything is written to ``book/_executed/landing``, which git ignores: the key figure and the preview from the shipped
scores, the thumbnails from the executed notebooks (`THUMBNAILS`), the verdicts from their file (`ANSWERS`).
"""

import json
from pathlib import Path

import matplotlib
import pandas as pd

from rmnb.book.display import inline
from rmnb.book.figures import WIDTH
from rmnb.book.figures.key import places, slope_chart, turning, two_kinds
from rmnb.files import atomic_path
from rmnb.panels import load_panel

EXECUTED = Path("book/_executed")
DIRECTORY = EXECUTED / "landing"
PROMPTS = ("greatest", "worst")
#: Notebook -> name of the figure that stands for it on the first page.
THUMBNAILS = {
    "01_heterogeneity": "fig-violins",
    "02_asymmetry": "fig-valence",
    "03_framing": "fig-framing-tau",
    "04_frequency": "fig-frequency-steps",
    "05_identity": "fig-identity-gaps",
    "06_elo": "fig-elo-words",
    "07_agency_communion": "fig-agency-gap",
    "08_sequences": "fig-sequence-length",
    "09_training": "fig-course-agreement",
}
#: Claim whose verdict answers the question of a notebook.
ANSWERS = {
    "01_heterogeneity": "disagree",
    "02_asymmetry": "finer",
    "03_framing": "mirror",
    "04_frequency": "frequent",
    "05_identity": "identity",
    "06_elo": "people",
    "07_agency_communion": "communion",
    "08_sequences": "sequences",
    "09_training": "same_data",
}
_NOTHING = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 320 200" width="320" height="200"/>'


def thumbnail(notebook: dict, name: str) -> str | None:
    """The SVG of a notebook's figure of that name, else of its first figure, or None if it drew none."""
    drawn = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            if svg := output.get("data", {}).get("image/svg+xml"):
                called = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name", "")
                drawn.setdefault(called, "".join(svg))
    return drawn.get(name) or next(iter(drawn.values()), None)


def badge(verdict: str) -> str:
    """HTML of a verdict: its words, and a mark that its kind gives it."""
    return f'<span class="verdict {verdict.replace(" ", "-")}">{inline(verdict)}</span>'


def tell(verdicts: Path, directory: Path) -> None:
    """Write ``verdicts.txt``, the short table, and for each chapter the claim and what the panel says of it."""
    texts = dict.fromkeys(ANSWERS, "") | {"verdicts": ""}
    if verdicts.exists():
        table = pd.read_csv(verdicts).pivot(index=["key", "claim", "chapter"], columns="source", values="verdict")
        lines = [
            "```{table}",
            ":class: verdicts-short",
            "",
            "| Claim | The authors' models | This panel |",
            "|---|---|---|",
        ]
        for (key, claim, chapter), line in table.iterrows():
            link = f"{{doc}}`{claim} <_executed/{chapter}>`"
            lines.append(f"| {link} | {badge(line['released'])} | {badge(line['panel'])} |")
            for stem in (stem for stem, answer in ANSWERS.items() if answer == key):
                texts[stem] = f"{inline(claim)} {badge(line['panel'])}\n"
        texts["verdicts"] = "\n".join([*lines, "```"]) + "\n"
    for name, text in texts.items():
        with atomic_path(directory / f"{name}.txt") as part:
            part.write_text(text, encoding="utf-8")


def draw(directory: Path) -> None:
    """Write ``key.svg`` and ``social.png`` (1200 by 630) from the demo panel's scores."""
    from matplotlib.figure import Figure

    panel = load_panel("demo")
    family = {model.name: model.family for model in panel.models}
    titles = dict(zip(two_kinds(turning(panel, PROMPTS), family), ("reads the question", "does not"), strict=True))
    tables = {name: places(panel, name, PROMPTS) for name in titles}
    with matplotlib.rc_context({"svg.hashsalt": "rmnb", "font.family": "DejaVu Sans"}):
        key = Figure(figsize=(WIDTH, 5.2), layout="constrained")
        for axes, (name, title) in zip(key.subplots(1, 2), titles.items(), strict=True):
            slope_chart(axes, tables[name], f"{name}: {title}")
        social = Figure(figsize=(12, 6.3), facecolor="white")
        social.text(0.05, 0.62, "Inside reward models,\none token at a time", size=34, weight="bold", va="center")
        asked = "\n".join(f"“{panel.prompt(prompt).text}”" for prompt in PROMPTS)
        social.text(
            0.05, 0.34, f"Every token of the vocabulary\nas the answer to one question:\n{asked}", size=15, va="center"
        )
        name = next(iter(titles))
        slope_chart(social.add_axes((0.58, 0.02, 0.4, 0.96)), tables[name], name, size=11)
        for figure, file, options in (
            (key, "key.svg", {"metadata": {"Date": None}}),
            (social, "social.png", {"dpi": 100}),
        ):
            with atomic_path(directory / file) as part:
                figure.savefig(part, format=file.rpartition(".")[2], **options)


def make(app) -> None:
    """Draw what is missing or older than the scores, and copy the thumbnails."""
    root = Path(app.srcdir)
    directory = root / DIRECTORY
    for stem, name in THUMBNAILS.items():
        source, svg = root / EXECUTED / f"{stem}.ipynb", None
        if source.exists():
            svg = thumbnail(json.loads(source.read_text(encoding="utf-8")), name)
        with atomic_path(directory / f"{stem}.svg") as part:
            part.write_text(svg or _NOTHING, encoding="utf-8")
    tell(root / EXECUTED / "verdicts.csv", directory)
    made = [directory / name for name in ("key.svg", "social.png")]
    sources = [*(root / "data/demo/scores").rglob("*.parquet"), root / "rmnb/book/figures/key.py", Path(__file__)]
    if not all(path.exists() for path in made) or min(path.stat().st_mtime for path in made) < max(
        path.stat().st_mtime for path in sources
    ):
        draw(directory)


def setup(app) -> dict:
    """Make the images before any page is read."""
    app.connect("builder-inited", make)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
