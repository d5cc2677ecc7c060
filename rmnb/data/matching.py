"""How the project's own word lists were balanced: optimal matching on frequency and length.

The stored tables ``agency_communion.tsv`` and ``identity_terms.tsv`` are what `agency_communion` and `identity_terms`
here choose from the candidates beside them; ``python -m rmnb.data.matching`` writes them again.
"""

import csv
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment
from wordfreq import zipf_frequency

from rmnb.files import atomic_path

LISTS = Path(str(resources.files("rmnb.data"))) / "lists"
NOUNS_PER_CATEGORY = 60
_SCALES = np.array([0.25, 1.5])  # a quarter of a Zipf unit weighs as much as one and a half letters
_PEOPLE = " people"
_THING = 0.5  # a control that names a thing is second choice to one that names a person


def features(words: Sequence[str]) -> np.ndarray:
    """Zipf frequency (log10 per thousand million words) and length in letters, float64 array of shape (words, 2)."""
    return np.array([(zipf_frequency(word, "en"), len(word)) for word in words], dtype=np.float64)


def match(words: Sequence[str], candidates: Sequence[str], penalty: np.ndarray | None = None) -> np.ndarray:
    """A candidate of its own for each word, at the least total distance in frequency and length.

    Parameters
    ----------
    words, candidates : sequences of str
        At least as many candidates as words.
    penalty : float array of shape (candidates,), optional
        Added to the squared distance of a candidate from any word.

    Returns
    -------
    int array of shape (words,)
        Indices into `candidates`, no two the same.
    """
    gaps = (features(words)[:, None, :] - features(candidates)[None, :, :]) / _SCALES
    cost = (gaps**2).sum(axis=2)
    if penalty is not None:
        cost = cost + penalty
    rows, columns = linear_sum_assignment(cost)
    return columns[np.argsort(rows)]


def plural(noun: str) -> str:
    """The plural of a regular English noun (all candidates are regular)."""
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def agency_communion() -> list[tuple[str, str]]:
    """(category, noun): the 60 pairs of an agency and a communion noun that lie closest in frequency and length."""
    words = {row["category"]: row["words"].split() for row in _read("agency_communion_candidates.tsv")}
    agency, communion = words["agency"], words["communion"]
    matched = [communion[k] for k in match(agency, communion)]
    distance = (((features(agency) - features(matched)) / _SCALES) ** 2).sum(axis=1)
    best = np.sort(np.argsort(distance, kind="stable")[:NOUNS_PER_CATEGORY])
    return [("agency", agency[k]) for k in best] + [("communion", matched[k]) for k in best]


def identity_terms() -> list[tuple[str, str, str, str, str]]:
    """(axis, group, form, term, control): every identity term with a neutral control of the same form."""
    groups = _read("identity_groups.tsv")
    pool = {row["form"]: row["words"].split() for row in _read("control_candidates.tsv")}
    nouns = pool["person"] + pool["thing"]
    penalty = np.array([0.0] * len(pool["person"]) + [_THING] * len(pool["thing"]))
    choices = {
        "plural_noun": [plural(noun) for noun in nouns],
        "singular_noun": nouns,
        "adjective": pool["adjective"],
        "phrase": pool["person_adjective"],  # "deaf people" is compared with another "… people"
    }
    control: dict[tuple[str, str], str] = {}
    for form, candidates in choices.items():
        terms = sorted({word for row in groups for kind, word in _words(row) if kind == form})
        found = match(terms, candidates, penalty if form.endswith("noun") else None)
        control |= {(form, term): candidates[k] for term, k in zip(terms, found, strict=True)}
    rows = []
    for row in groups:
        for kind, word in _words(row):
            chosen = control[kind, word].capitalize() if word[0].isupper() else control[kind, word]
            form, end = ("plural_noun", _PEOPLE) if kind == "phrase" else (kind, "")
            rows.append((row["axis"], row["group"], form, word + end, chosen + end))
    return rows


def _words(row: dict[str, str]) -> list[tuple[str, str]]:
    """(form, word) of a group's terms; of ``deaf people`` the form is phrase and the word is deaf."""
    terms = [(form, row[form]) for form in ("plural_noun", "singular_noun", "adjective") if row[form]]
    return [("phrase" if word.endswith(_PEOPLE) else form, word.removesuffix(_PEOPLE)) for form, word in terms]


def _read(name: str) -> list[dict[str, str]]:
    with open(LISTS / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def _write(name: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    with atomic_path(LISTS / name) as part, open(part, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    _write("agency_communion.tsv", ("category", "noun"), agency_communion())
    _write("identity_terms.tsv", ("axis", "group", "form", "term", "control"), identity_terms())
