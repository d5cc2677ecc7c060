"""What the first page shows, made when the book is built: key figure, thumbnails of the chapters, preview image.

Everything is written to ``book/_executed/landing``, which git ignores: the key figure and the preview from the shipped
scores, the thumbnails from the executed notebooks. `THUMBNAILS` says which figure stands for which notebook.
"""

import json
from pathlib import Path

import matplotlib

from rmnb.book.figures.key import pair_of_models, places, slope_chart
from rmnb.files import atomic_path
from rmnb.panels import load_panel

EXECUTED = Path("book/_executed")
DIRECTORY = EXECUTED / "landing"
PROMPT = "greatest"
#: Notebook -> name of the figure that stands for it on the first page.
THUMBNAILS = {
    "01_heterogeneity": "fig-violins",
    "02_asymmetry": "fig-valence",
    "03_framing": "fig-framing-tau",
    "04_frequency": "fig-frequency-steps",
    "05_identity": "fig-identity-gaps",
    "06_elo": "fig-elo-votes",
    "07_agency_communion": "fig-agency-panel",
    "08_sequences": "fig-sequence-length",
    "09_training": "fig-course-valence",
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


def draw(directory: Path) -> None:
    """Write ``key.svg`` and ``social.png`` (1200 by 630) from the demo panel's scores."""
    from matplotlib.figure import Figure

    from rmnb.findings.align import align, load_scans

    panel = load_panel("demo")
    pair = pair_of_models(panel)
    scans = load_scans(
        panel.model_copy(update={"models": tuple(panel.model(name) for name in dict.fromkeys(pair))}), PROMPT
    )
    table = places(align(scans, how="word"))
    table = table[[pair[0], pair[-1]]]
    with matplotlib.rc_context({"svg.hashsalt": "rmnb", "font.family": "DejaVu Sans"}):
        key = Figure(figsize=(5.4, 5.2), layout="constrained")
        slope_chart(key.subplots(), table, pair)
        social = Figure(figsize=(12, 6.3), facecolor="white")
        social.text(0.05, 0.62, "Inside reward models,\none token at a time", size=34, weight="bold", va="center")
        question = panel.prompt(PROMPT).text
        social.text(
            0.05,
            0.34,
            f"Every token of the vocabulary\nas the answer to one question:\n“{question}”",
            size=17,
            va="center",
        )
        slope_chart(social.add_axes((0.55, 0.02, 0.43, 0.96)), table, pair, size=11)
        for figure, name, options in (
            (key, "key.svg", {"metadata": {"Date": None}}),
            (social, "social.png", {"dpi": 100}),
        ):
            with atomic_path(directory / name) as part:
                figure.savefig(part, format=name.rpartition(".")[2], **options)


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
