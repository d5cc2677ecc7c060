"""A page asks for nothing that is not there and nothing that it does not need, whatever the theme writes into it."""


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


def setup(app) -> dict:
    app.connect("html-page-context", tidy, priority=900)  # after the extensions that write
    return {"parallel_read_safe": True, "parallel_write_safe": True}
