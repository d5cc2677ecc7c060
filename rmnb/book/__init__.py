"""What the pages need: tokens and tables made safe, figures, the explorer's data, Colab, running a notebook.

`table` shows a data frame, `show` pieces of HTML such as `table_html` and `behind_a_click` make; `save` and `verdict`
keep what a chapter found. Beside them: `figures`, `notebook.run_notebook`, `colab`, `explorer.write_explorer`.
"""

from rmnb.book.display import behind_a_click, inline, show, table, table_html
from rmnb.book.notebook import results_directory
from rmnb.book.results import read_verdicts, save, verdict, verdict_html

__all__ = [
    "behind_a_click",
    "inline",
    "read_verdicts",
    "results_directory",
    "save",
    "show",
    "table",
    "table_html",
    "verdict",
    "verdict_html",
]
