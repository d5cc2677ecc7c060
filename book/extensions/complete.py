"""Pages request no file that is missing or that they do not need, whatever the theme writes into them."""


def _is_thebe(script) -> bool:
    """Whether a script of the theme, a file or its text, belongs to Thebe."""
    name = getattr(script, "filename", script)
    text = getattr(script, "attributes", {}).get("body", "")
    return "thebe" in f"{name} {text}"


def tidy(app, pagename, templatename, context, doctree) -> None:
    """Leave out Thebe, which would come from the network; set a colour mode, and an icon, which browsers ask for."""
    context["script_files"] = [script for script in context.get("script_files", ()) if not _is_thebe(script)]
    context["default_mode"] = context.get("default_mode") or "auto"
    if not context.get("favicon_url"):
        context["metatags"] = context.get("metatags", "") + '<link rel="icon" href="data:,">'


def setup(app) -> dict:
    app.connect("html-page-context", tidy, priority=900)  # after the extensions that write
    return {"parallel_read_safe": True, "parallel_write_safe": True}
