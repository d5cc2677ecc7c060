"""Estimators and tests: arrays in, frozen dataclasses or arrays out. Imports neither torch nor pandas."""

from rmnb.stats.concordance import kendall_interval, spearman_interval
from rmnb.stats.estimate import Estimate
from rmnb.stats.formulas import Fit, mixed, ols
from rmnb.stats.gaps import Gap, identity_gaps
from rmnb.stats.geometry import Alignment, Embedding, align, embed
from rmnb.stats.mixed import (
    MixedModel,
    difference_between_groups,
    factorial,
    mean_over_models,
    mixed_model,
    over_models,
)
from rmnb.stats.moments import Moments, moments
from rmnb.stats.multiplicity import benjamini_hochberg, holm
from rmnb.stats.permutation import PermutationTest, sign_flip_test, two_group_test
from rmnb.stats.ranks import (
    dense_ranks,
    kendall_matrix,
    kendall_tau,
    mid_ranks,
    overlap_matrix,
    rank_biased_overlap,
    spearman,
    spearman_matrix,
)
from rmnb.stats.regression import (
    Regression,
    ValenceSlopes,
    frequency_slope,
    indicators,
    least_squares,
    standardise,
    valence_slopes,
)
from rmnb.stats.resampling import Bootstrap, bootstrap, bootstrap_tau
from rmnb.stats.rsa import MantelTest, MatrixRegression, closeness, mantel, matrix_regression, partial_mantel, same
from rmnb.stats.splines import Curvature, curvature
from rmnb.stats.spread import mean_difference, place_entropy, tail_ratio

__all__ = [
    "Alignment",
    "Bootstrap",
    "Curvature",
    "Embedding",
    "Estimate",
    "Fit",
    "Gap",
    "MantelTest",
    "MatrixRegression",
    "MixedModel",
    "Moments",
    "PermutationTest",
    "Regression",
    "ValenceSlopes",
    "align",
    "benjamini_hochberg",
    "bootstrap",
    "bootstrap_tau",
    "closeness",
    "curvature",
    "dense_ranks",
    "difference_between_groups",
    "embed",
    "factorial",
    "frequency_slope",
    "holm",
    "identity_gaps",
    "indicators",
    "kendall_interval",
    "kendall_matrix",
    "kendall_tau",
    "least_squares",
    "mantel",
    "matrix_regression",
    "mean_difference",
    "mean_over_models",
    "mid_ranks",
    "mixed",
    "mixed_model",
    "moments",
    "ols",
    "over_models",
    "overlap_matrix",
    "partial_mantel",
    "place_entropy",
    "rank_biased_overlap",
    "same",
    "sign_flip_test",
    "spearman",
    "spearman_interval",
    "spearman_matrix",
    "standardise",
    "tail_ratio",
    "two_group_test",
    "valence_slopes",
]
