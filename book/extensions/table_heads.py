"""Tables read from files have names of columns as heads; pages show them in words (`rmnb.book.display.in_words`)."""

from docutils import nodes

from rmnb.book.display import in_words


def heads_in_words(app, doctree) -> None:
    """Rewrite the heads of every table; names that are code stay."""
    for head in doctree.findall(nodes.thead):
        for text in list(head.findall(nodes.Text)):
            words = in_words(text.astext())
            if words != text.astext() and not isinstance(text.parent, nodes.literal):
                text.parent.replace(text, nodes.Text(words))


def setup(app) -> dict:
    """Rewrite each page as soon as it is read."""
    app.connect("doctree-read", heads_in_words)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
