"""Scores of different tokenizers meet on the right rows."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmnb.errors import InputError
from rmnb.findings.align import align, available_scans, load_scores, word_scores
from rmnb.panels import ModelSpec, Panel, PromptSpec
from rmnb.scoring.store import write_scores


def scan(rows) -> pd.DataFrame:
    tokens, kinds, scores = zip(*rows, strict=True)
    ids = np.arange(len(rows), dtype=np.int32)
    return pd.DataFrame({"token_id": ids, "token": tokens, "kind": kinds, "score": np.array(scores, np.float32)})


A = scan(
    [
        ("<bos>", "special", 9.0),
        (" Love", "word_start", 1.0),
        ("love", "word_continuation", 2.0),
        (" love", "word_start", 3.0),
        ("�", "byte", 0.0),
        ("�", "byte", 1.0),
        ("ectable", "word_continuation", 4.0),
        ("爱", "word_continuation", 5.0),
        ("!", "punctuation", 6.0),
        ("", "unused", 7.0),
    ]
)
B = scan(
    [
        ("!", "punctuation", -6.0),
        (" love", "word_start", -3.0),
        (" Love", "word_start", -1.0),
        ("�", "byte", -1.0),
        ("LOVE", "word_continuation", -5.0),
        ("ectable", "word_continuation", -4.0),
        ("爱", "word_continuation", -5.0),
        ("", "unused", 0.0),
    ]
)


def test_exact_joins_on_the_string_and_drops_duplicates_of_either_model():
    table = align({"b": B, "a": A})
    assert table.columns.tolist() == ["b", "a"] and table.index.name == "token"
    assert table.index.tolist() == ["!", " love", " Love", "ectable", "爱"]
    assert table.loc[" love"].tolist() == [-3.0, 3.0]
    assert (table.dtypes == np.float32).all()


def test_word_folds_case_and_marker_and_leaves_fragments_out():
    words = word_scores(A)
    assert words.to_dict("list") == {"word": ["love", "爱"], "score": [2.0, 5.0], "variants": [3, 1]}
    table = align({"a": A, "b": B}, how="word")
    assert table.index.tolist() == ["love", "爱"]
    assert table.loc["love"].tolist() == [2.0, -3.0]


@given(
    st.lists(
        st.tuples(st.sampled_from([" a", "a", " b", "B", " c", "𝔸", "ß", " ss"]), st.floats(-5, 5, width=32)),
        min_size=1,
    )
)
def test_aligned_scores_are_the_models_own(rows):
    table = scan([(" same", "word_start", 0.5)] + [(token, "word_start", score) for token, score in rows])
    aligned = align({"x": table, "y": table[::-1]})
    assert aligned.index.is_unique
    np.testing.assert_array_equal(aligned["x"], aligned["y"])
    own = table.set_index("token")["score"]
    assert all(aligned.loc[token, "x"] == own[token] for token in aligned.index)
    np.testing.assert_allclose(
        np.average(word_scores(table)["score"], weights=word_scores(table)["variants"]),
        table["score"].mean(),
        atol=1e-5,
    )


def test_mistakes_are_named():
    with pytest.raises(InputError, match="'fuzzy': choose exact or word"):
        align({"a": A}, how="fuzzy")
    with pytest.raises(InputError, match="scan of b has no column score"):
        align({"a": A, "b": B.drop(columns="score")})
    with pytest.raises(InputError, match="share nothing"):
        align({"a": A, "b": scan([("x", "word_start", 1.0)])})
    with pytest.raises(InputError, match="at least one scan"):
        align({})


def test_a_panels_scores_are_read_in_its_order(tmp_path, monkeypatch):
    monkeypatch.setenv("RMNB_CACHE", str(tmp_path))
    models = tuple(ModelSpec(name=name, source=f"someone/{name}") for name in ("b", "a"))
    prompt = PromptSpec(key="greatest", text="What is greatest?", framing="positive")
    panel = Panel(name="pair", title="Pair", models=models, prompts=(prompt,))
    for name, table in (("a", A), ("b", B)):
        provenance = {
            "model": name,
            "prompt": prompt.text,
            "prompt_key": prompt.key,
            "protocol": "exact",
            "dtype": "float32",
        }
        write_scores(panel, table, {**provenance, "tokenizer_sha256": name * 64})
    pd.testing.assert_frame_equal(load_scores(panel, "greatest"), align({"b": B, "a": A}), check_dtype=False)
    assert load_scores(panel, "greatest", how="word").loc["love"].tolist() == [-3.0, 2.0]
    with pytest.raises(InputError, match=r"no scores of b for prompt greatest .published."):
        load_scores(panel, "greatest", protocol="published")
    assert (
        list(available_scans(panel, "greatest")) == ["b", "a"] and available_scans(panel, "greatest", "published") == {}
    )
