"""What the pages need: tokens and tables made safe, figures, the explorer's data, Colab, running a notebook.

Doors: `table` (a data frame as a page shows it), `show` (several pieces of HTML, such as `table_html`, `notice` and
`behind_a_click` make them), `inline`; `figures`, `notebook.run_notebook`, `explorer.write_explorer`, `colab`.
"""

from rmnb.book.display import behind_a_click, in_short, inline, notice, show, table, table_html

__all__ = ["behind_a_click", "in_short", "inline", "notice", "show", "table", "table_html"]
