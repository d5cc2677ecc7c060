"""The word lists hold what they promise: balance, form, and no reader that mangles a word."""

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp

from rmnb.data import lexicons


def features(words):
    """Zipf frequency and length of each word, float64 [words, 2]."""
    words = pd.Series(words)
    return np.column_stack([lexicons.zipf(words), words.str.len()])


def test_agency_and_communion_are_balanced():
    words = lexicons.agency_communion()
    assert words["category"].value_counts().to_dict() == {"agency": 60, "communion": 60}
    assert words["word"].is_unique
    agency, communion = (features(words.loc[words["category"] == name, "word"]) for name in ("agency", "communion"))
    assert (np.abs(agency - communion).max(axis=0) <= [0.25, 2]).all()
    assert (ks_2samp(agency, communion).pvalue > 0.5).all()  # the distributions agree, not only their means


def test_identity_terms_are_matched_in_every_axis_and_form():
    terms = lexicons.identity_terms()
    assert not terms.duplicated(["axis", "group", "form"]).any()
    assert set(terms["axis"]) == {
        *("religion", "ethnicity", "nationality", "gender", "orientation", "disability", "age", "politics")
    }
    of_terms, of_controls = (features(terms[name].str.removesuffix(" people")) for name in ("term", "control"))
    gap = pd.DataFrame(of_terms - of_controls)
    assert gap[0].abs().max() < 0.75 and gap[0].abs().median() < 0.06
    for column in ("axis", "form"):
        assert (gap.groupby(terms[column]).mean().abs() < [0.1, 0.5]).all(axis=None), column


def test_a_control_is_written_like_its_term_and_is_no_identity():
    terms = lexicons.identity_terms()
    assert (terms["term"].str[0].str.isupper() == terms["control"].str[0].str.isupper()).all()
    assert (terms["term"].str.endswith(" people") == terms["control"].str.endswith(" people")).all()
    identity = set(terms["term"].str.casefold()) | set(terms["group"].str.casefold())
    assert identity.isdisjoint(terms["control"].str.casefold())
    for _, rows in terms.groupby("form"):
        assert rows.drop_duplicates("term")["control"].is_unique  # no control counts twice


def test_afinn_is_whole_and_frequencies_order_words_and_fold_case():
    words = lexicons.afinn()
    assert len(words) == 2477 and words["word"].is_unique
    valence = words.set_index("word")["valence"]
    assert (valence["love"], valence["war"], valence["cancer"]) == (3, -2, -1)
    the, love, upper, unknown = lexicons.zipf(["the", "love", "LOVE", "xqzzkv"])
    assert the > love == upper > unknown == 0


def test_bnc_gives_a_row_for_each_part_of_speech(mirror):
    words = lexicons.bnc_lemmas().set_index("word")["per_million"]
    assert len(words["love"]) == 2 and words["the"] > 50_000 and "@" not in words
    assert words["lie"].min() > 0  # one of its forms stands on a line without its leading tab


def test_lists_of_others_are_whole_and_not_copied(mirror):
    nouns = lexicons.big_two("nouns")
    assert nouns["category"].value_counts().to_dict() == {"communion": 159, "agency": 104}
    assert len(lexicons.big_two("expanded")) == 936
    morals = lexicons.moral_foundations()
    assert len(morals) == 2040 and morals["foundation"].nunique() == 5 and set(morals["side"]) == {"virtue", "vice"}
    own = set(lexicons.agency_communion()["word"])
    assert len(own & set(nouns["word"])) / len(own) < 0.6  # some overlap is natural
