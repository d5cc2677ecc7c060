"""Estimators and tests that no library has: arrays (or a frame and a formula) in, frozen dataclasses or arrays out.

What SciPy, statsmodels and scikit-learn compute is asked of them. Here is what they lack: rank correlations with
intervals by word (`kendall_interval`, `spearman_interval`), rank-biased overlap under ties (`rank_biased_overlap`),
moments and the bootstrap by word (`moments`, `bootstrap`), Mantel tests and regressions on matrices over models
(`mantel`, `matrix_regression`), matched gaps (`identity_gaps`), tests over models that count every arrangement
(`two_group_test`, `sign_flip_test`), and formulas that refuse collinear columns and gaps and count degrees of freedom
as nlme does (`ols`, `mixed`). Importing this loads neither torch nor pandas.
"""

from rmnb.stats.concordance import kendall_interval, spearman_interval
from rmnb.stats.estimate import Estimate
from rmnb.stats.gaps import Gap, identity_gaps
from rmnb.stats.moments import Moments, moments, standardise, tail_ratio
from rmnb.stats.over_models import (
    PermutationTest,
    difference_between_groups,
    jackknife_over_models,
    mean_over_models,
    over_models,
    sign_flip_test,
    two_group_test,
)
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
from rmnb.stats.regression import Curvature, Fit, curvature, fit_clustered, mixed, ols
from rmnb.stats.resampling import Bootstrap, bootstrap
from rmnb.stats.rsa import (
    Embedding,
    MantelTest,
    MatrixRegression,
    closeness,
    embed,
    mantel,
    matrix_regression,
    same,
    upper,
)
from rmnb.stats.spread import mean_difference, place_entropy

__all__ = [
    "Bootstrap",
    "Curvature",
    "Embedding",
    "Estimate",
    "Fit",
    "Gap",
    "MantelTest",
    "MatrixRegression",
    "Moments",
    "PermutationTest",
    "bootstrap",
    "closeness",
    "curvature",
    "dense_ranks",
    "difference_between_groups",
    "embed",
    "fit_clustered",
    "identity_gaps",
    "jackknife_over_models",
    "kendall_interval",
    "kendall_matrix",
    "kendall_tau",
    "mantel",
    "matrix_regression",
    "mean_difference",
    "mean_over_models",
    "mid_ranks",
    "mixed",
    "moments",
    "ols",
    "over_models",
    "overlap_matrix",
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
    "upper",
]
