"""The difference of the slopes among good and bad words under other choices: a specification curve a question."""

from collections.abc import Mapping

import pandas as pd

from rmnb import stats
from rmnb.findings.scan_tables import TOKENS, afinn, on_scale, rated
from rmnb.findings.specifications import specification_curve
from rmnb.findings.valence import slope_difference, slopes
from rmnb.stats.estimate import Estimate


def specifications(
    exact: Mapping[str, pd.DataFrame], published: Mapping[str, pd.DataFrame], prompt: str
) -> pd.DataFrame:
    """The standardised difference of the slopes under one prompt, mean over models, by every combination of choices.

    Parameters
    ----------
    exact, published
        Tables of the same models by either protocol; the second counts where all of its models have the prompt.

    Returns
    -------
    DataFrame
        As `specification_curve` gives it; intervals over models (of a single model, over words).
    """
    lexica = {"AFINN-111": afinn(), "AFINN-165": afinn("165")}
    known = set().union(*(lexicon["word"] for lexicon in lexica.values()))
    protocols = {"exact": exact}
    if published and all(prompt in table for table in published.values()):
        protocols["published"] = published
    prepared = {
        (protocol, scale): [on_scale(table, [prompt], scale)[table["word"].isin(known)] for table in tables.values()]
        for protocol, tables in protocols.items()
        for scale in ("score", "rank")
    }

    def difference(tokens: str, scale: str, words: str, frequency: str, protocol: str) -> Estimate:
        found = [rated(table, prompt, lexica[words], tokens) for table in prepared[protocol, scale]]
        if len(found) == 1:
            return slopes(found[0], frequency == "held")["difference"]
        return stats.mean_over_models([slope_difference(one, frequency == "held") for one in found])

    choices = {
        "tokens": list(TOKENS),
        "scale": ["score", "rank"],
        "words": list(lexica),
        "frequency": ["free", "held"],
        "protocol": list(protocols),
    }
    return specification_curve(choices, difference)
