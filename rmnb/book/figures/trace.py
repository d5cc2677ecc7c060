"""The figure of a response's reward as it grows."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from rmnb.book.display import figure_text
from rmnb.book.figures.style import FAINT, INK, PALETTE, WIDTH, plain_text


def draw(table: pd.DataFrame, title: str) -> Figure:
    """Rewards of `rmnb.scoring.trace.trace`, one below the other, each with its token; bars are the changes."""
    height = 1 + 0.2 * len(table)
    fig, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, height), sharey=True, width_ratios=[2, 1])
    left.plot(table["reward"], table["position"], "o-", color=INK, markersize=3.5, linewidth=1)
    left.set_yticks(table["position"], [figure_text(token) for token in table["token"]])
    left.set_xlabel("reward up to this token")
    left.set_title(plain_text(title))
    change = table["change"].fillna(0)
    right.barh(table["position"], change, color=[PALETTE[0] if value >= 0 else PALETTE[1] for value in change])
    right.axvline(0, color=FAINT, linewidth=0.8)
    right.set_xlabel("its change")
    left.invert_yaxis()
    return fig
