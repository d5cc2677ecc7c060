"""A page asks for nothing that is not there and nothing that it does not need, whatever the theme writes into it."""

from pathlib import Path


def tidy(app, pagename, templatename, context, doctree) -> None:
    """Leave out Thebe, which would come from the network; name a colour mode and an icon, which browsers ask for."""
    context["script_files"] = [
        script
        for script in context.get("script_files", ())
        if "thebe" not in f"{getattr(script, 'filename', script)} {getattr(script, 'attributes', {}).get('body', '')}"
    ]
    context["default_mode"] = context.get("default_mode") or "auto"
    if not context.get("favicon_url"):
        context["metatags"] = context.get("metatags", "") + '<link rel="icon" href="data:,">'


def lighten(app, error) -> None:
    """Empty the script of all Font Awesome icons, 1.5 MB a page: the theme's style sheet draws the same from a font."""
    script = Path(app.outdir) / "_static" / "scripts" / "fontawesome.js"
    if not error and script.exists():
        script.write_text("// Icons are drawn by the style sheet, from a font.\n", encoding="utf-8")


def setup(app) -> dict:
    app.connect("html-page-context", tidy, priority=900)  # after the extensions that write
    app.connect("build-finished", lighten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
