"""Do models of one base family prefer other moral foundations than those of another?"""

from collections.abc import Mapping

import pandas as pd

from rmnb.findings import categories
from rmnb.findings.results import Results


def measure(
    scores: Mapping[str, pd.DataFrame],
    words: pd.DataFrame,
    family: Mapping[str, str],
    framing: Mapping[str, str],
    *,
    panel: str = "",
    source: str = "panel",
    protocol: str = "exact",
    seed: int = 0,
) -> pd.DataFrame:
    """Rows of `rmnb.findings.categories.add_ranks`: median ranks of the foundations, and two bases compared.

    Parameters
    ----------
    scores
        Model → rewards: index word (unique), one column a prompt.
    words
        word, category (authority, care, fairness, loyalty, sanctity).
    family, framing
        Of each model, and of each prompt (positive or negative).
    panel, source, protocol
        Where the rewards are from, as `rmnb.findings.results` names it.
    seed
        Of the permutations.
    """
    results = Results("moral_foundations", panel)
    about = {"source": source, "protocol": protocol, "seed": seed}
    categories.add_ranks(results, scores, words, family, framing, **about)
    return results.frame()
