"""What the pages need: tokens and tables made safe, figures, the explorer's data, Colab, running a notebook.

Doors: `table` (a data frame as a page shows it), `show` (several pieces of HTML, such as `table_html`, `notice`,
`behind_a_click` and `options_dropped` make them), `inline`; `in_short` and `say` (sentences with quoted numbers);
`results_directory`; `figures`, `notebook.run_notebook`, `explorer.write_explorer`, `colab`.
"""

from rmnb.book.display import behind_a_click, in_short, inline, notice, say, show, table, table_html
from rmnb.book.notebook import results_directory
from rmnb.book.survival import options_dropped

__all__ = [
    "behind_a_click",
    "in_short",
    "inline",
    "notice",
    "options_dropped",
    "results_directory",
    "say",
    "show",
    "table",
    "table_html",
]
