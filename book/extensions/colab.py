"""The launch buttons of a notebook's page open the notebook itself, not the executed copy that the page is made of."""

_EXECUTED, _SOURCE = "/book/_executed/", "/notebooks/"


def point_to_the_source(app, pagename, templatename, context, doctree) -> None:
    """Rewrite the links of the theme's launch buttons, nested groups of buttons included."""
    waiting = list(context.get("header_buttons", ()))
    while waiting:
        button = waiting.pop()
        waiting += button.get("buttons", ())
        if _EXECUTED in button.get("url", ""):
            button["url"] = button["url"].replace(_EXECUTED, _SOURCE)


def setup(app):
    app.connect("html-page-context", point_to_the_source, priority=900)  # after the theme has made the buttons
    return {"parallel_read_safe": True, "parallel_write_safe": True}
