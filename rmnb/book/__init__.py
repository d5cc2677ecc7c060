"""What the pages need: tokens and tables made safe, figures, the explorer's data, Colab, running a notebook.

Doors: `table` (a data frame as a page shows it), `show` (several pieces of HTML, such as `table_html`, `notice` and
`behind_a_click` make them), `inline`; `in_short` and `say` (sentences with quoted numbers); `results_directory`;
`figures`, `notebook.run_notebook`, `explorer.write_explorer`, `colab`.
"""

from rmnb.book.display import behind_a_click, in_short, inline, notice, say, show, table, table_html
from rmnb.book.notebook import results_directory

__all__ = [
    "behind_a_click",
    "in_short",
    "inline",
    "notice",
    "results_directory",
    "say",
    "show",
    "table",
    "table_html",
]
