"""What the pages need: tokens and tables made safe, figures, the explorer's data, Colab, running a notebook.

Doors: `display`, `figures`, `notebook.run_notebook`, `explorer.write_explorer`, `colab`.
"""
