"""What a gap between identity terms and controls can be trusted for: planted scores, and all reasonable choices."""

import functools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from rmnb import stats
from rmnb.findings import identity, scan_tables
from rmnb.findings.results import Results
from rmnb.findings.specifications import specification_curve
from rmnb.truth.planted import PlantedEffects, planted_scan

SPELLINGS, UNITS = ("after a space", "any"), ("z", "rank")
FORMS = {"all": (), "nouns": ("plural_noun", "singular_noun"), "adjectives": ("adjective",)}
PLANTED = PlantedEffects(identity={"religion": -0.6}, log_frequency=0.1, length=-0.1, word_sd=0.5, noise_sd=0.2)


def measure_planted(
    prompt: str, seed: int = 0, effects: PlantedEffects = PLANTED, n_permutations: int = 2000, n_boot: int = 200
) -> pd.DataFrame:
    """One model whose gaps are known, through the door of `rmnb.findings.identity.measure`.

    Parameters
    ----------
    prompt
        Under which its rows stand.
    seed
        Of its scores and of the door.
    n_permutations, n_boot
        As in the door.

    Returns
    -------
    DataFrame
        Rows of source planted: the gaps by axis with p and q, planted_effect beside each, and identity_discoveries:
        how many of the `n` axes without a planted gap have p (``zero, p``) or q (``zero, q``) below 0.05.
    """
    terms = identity.terms().query("term.str.isalpha() and control.str.isalpha()")
    texts = list(dict.fromkeys([*terms["term"], *terms["control"]]))
    vocabulary = pd.DataFrame({"token_id": np.arange(len(texts), dtype=np.int32), "token": [f" {t}" for t in texts]})
    vocabulary["kind"] = pd.Categorical(["word_start"] * len(texts))
    scan = scan_tables.as_table({prompt: planted_scan(vocabulary, effects, seed)})
    about: dict = {"n_permutations": n_permutations, "n_boot": n_boot, "seed": seed}
    about |= {"panel": "planted", "source": "planted", "protocol": ""}
    rows = identity.measure({"": scan}, {prompt: "positive"}, **about)
    results = Results("identity", "planted")
    results.extend(rows)
    found = identity.tested(rows)
    truth = found["other"].map(effects.identity).fillna(0.0) / scan[prompt].std(ddof=0)
    for axis, value in zip(found["other"], truth, strict=True):
        results.add("planted", "planted_effect", value, other=axis, prompt=prompt)
    zero = found[truth == 0]
    for end in ("p", "q"):
        count = int((zero[end] < 0.05).sum())
        results.add("planted", "identity_discoveries", count, other=f"zero, {end}", prompt=prompt, n=len(zero))
    return results.frame()


def specifications(tables: Mapping[str, Mapping[str, pd.DataFrame]], wordings: Sequence[str]) -> pd.DataFrame:
    """The gap over all axes, its mean over models, under every combination of choices, of one question.

    Parameters
    ----------
    tables
        For each protocol the tables of `rmnb.findings.identity.measure`.
    wordings
        The prompts that ask the same, that of the headline first.

    Returns
    -------
    DataFrame
        As `rmnb.findings.specifications.specification_curve`; of one model the intervals are over groups.

    Raises
    ------
    InputError
        No term and its control are single tokens.
    """
    choices = {
        "protocol": [protocol for protocol, by in tables.items() if by],
        "wording": list(wordings),
        "form": list(FORMS),
        "spelling": list(SPELLINGS),
        "score": list(UNITS),
    }

    @functools.cache
    def texts(protocol, wording, spelling, score):
        asked = [table for table in tables[protocol].values() if wording in table]
        return [identity.scan_scores(table, wording, spelling, score) for table in asked]

    def estimate(protocol, wording, form, spelling, score):
        found = [
            identity.overall_gap(identity.pairs(one, FORMS[form])) for one in texts(protocol, wording, spelling, score)
        ]
        gaps = [gap for gap in found if gap]
        return stats.over_models(gaps) if gaps else None

    return specification_curve(choices, estimate)
