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
from rmnb.stats.formulas import Fit, mixed, ols
from rmnb.stats.gaps import Gap, identity_gaps
from rmnb.stats.geometry import Alignment, Embedding, align, embed
from rmnb.stats.moments import Moments, moments, standardise
from rmnb.stats.over_models import difference_between_groups, jackknife_over_models, mean_over_models, over_models
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
from rmnb.stats.resampling import Bootstrap, bootstrap, bootstrap_tau
from rmnb.stats.rsa import (
    MantelTest,
    MatrixRegression,
    closeness,
    mantel,
    matrix_regression,
    partial_mantel,
    same,
    upper,
)
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
    "Moments",
    "PermutationTest",
    "align",
    "bootstrap",
    "bootstrap_tau",
    "closeness",
    "curvature",
    "dense_ranks",
    "difference_between_groups",
    "embed",
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
    "upper",
]
