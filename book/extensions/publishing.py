"""What a published book has and a local one need not: sitemap, previews in other sites, launch buttons, a 404 page.

The address of the book is ``RMNB_BOOK_URL`` (the workflow that publishes sets it), else the GitHub Pages address that
follows from ``repository.url`` in ``_config.yml``, else unknown. Without an address there is no sitemap and no preview,
because both need absolute links; without a repository there are no launch buttons, because they would lead nowhere.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from sphinx.util import logging

_logger = logging.getLogger(__name__)
_PREVIEW = "book/_executed/results/first/vocabulary.png"
_SOCIAL = "_static/social.png"
_LOST = """
<h1>Page not found</h1>
<p>There is no page at this address. It may have moved: try the search above, or the contents on the left.</p>
"""


def book_url(published_at: str | None, sources: str | None) -> str | None:
    """The book's address with a slash at its end, from what the publisher says or where the sources are; or None."""
    if published_at:
        return published_at.rstrip("/") + "/"
    parts = urlsplit(sources or "")
    owner, _, name = parts.path.strip("/").partition("/")
    return f"https://{owner.lower()}.github.io/{name}/" if parts.netloc == "github.com" and name else None


def repository(config: Path) -> str | None:
    """The address of the sources: ``BOOK_REPOSITORY``, else the book's configuration, else git's remote; or None."""
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    url = os.environ.get("BOOK_REPOSITORY") or (settings.get("repository") or {}).get("url")
    if not url and (config.parent / ".git").exists():
        git = ["git", "-C", str(config.parent), "remote", "get-url", "origin"]
        remote = subprocess.run(git, capture_output=True, text=True).stdout.strip()
        known = re.fullmatch(r"(?:https://|git@|ssh://git@)github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?", remote)
        url = f"https://github.com/{known[1]}" if known else None
    return url.rstrip("/") if url else None


def addresses(root: Path) -> tuple[str | None, str | None]:
    """Where the book is published, and where its sources are; None for what nobody said."""
    sources = repository(root / "_config.yml")
    return book_url(os.environ.get("RMNB_BOOK_URL"), sources), sources


def configure(app, config) -> None:
    """Put the address, where it is known, where the other extensions look for it."""
    url, sources = addresses(Path(app.confdir))
    config.notfound_urls_prefix = urlsplit(url).path if url else "/"
    config.notfound_context = {"title": "Page not found", "body": _LOST}
    if sources:
        buttons = {"notebook_interface": "classic", "colab_url": "https://colab.research.google.com"}
        places = {"repository_url": sources, "repository_branch": "main", "launch_buttons": buttons}
        config.html_theme_options = {**config.html_theme_options, **places}
    if url:
        config.html_baseurl = url
        config.sitemap_url_scheme = "{link}"
        config.ogp_site_url = url
        config.ogp_site_name = getattr(config, "html_title", "") or "rmnb"
        config.ogp_image = url + _SOCIAL
        config.ogp_image_alt = "Every token of a vocabulary as a dot along a scale of rewards."
        config.ogp_social_cards = {"enable": False}
    else:
        _logger.info("the book's address is not known: no sitemap, no preview image (RMNB_BOOK_URL, repository.url)")


def single_page_as_pages(app) -> None:
    """Let the single page, from which the PDF is printed, draw all that the pages draw.

    Sphinx asks for a builder's own handlers, and for those of HTML only where it has none. Some extensions register
    handlers for the single page by name, and hide from it what all others registered for HTML.
    """
    handlers = app.registry.translation_handlers
    if "singlehtml" in handlers:
        handlers["singlehtml"] = {**handlers.get("html", {}), **handlers["singlehtml"]}


def copy_preview(app, error) -> None:
    """Put the preview image where its address says."""
    source = Path(app.srcdir) / _PREVIEW
    if error is None and app.builder.format == "html" and source.exists():
        target = Path(app.outdir) / _SOCIAL
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def setup(app) -> dict:
    """Load the extensions that can do their work with what is known."""
    url, sources = addresses(Path(app.confdir))
    for name, wanted in {
        "notfound.extension": True,
        "sphinx_sitemap": url,
        "sphinxext.opengraph": url,
        "colab": sources,
    }.items():
        if wanted:
            app.setup_extension(name)
    app.connect("config-inited", configure, priority=100)
    app.connect("builder-inited", single_page_as_pages)
    app.connect("build-finished", copy_preview)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
