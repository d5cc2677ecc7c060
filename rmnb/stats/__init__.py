"""Estimators and tests that no library has: arrays (or a frame and a formula) in, frozen dataclasses or arrays out.

What SciPy, statsmodels and scikit-learn compute is left to them. Here is what they lack: rank correlations with
intervals by word (`kendall_interval`, `spearman_interval`), rank-biased overlap under ties (`rank_biased_overlap`),
moments and the bootstrap by word (`moments`, `bootstrap`), changes of a share (`paired_change`), a test of matrices
over models (`mantel`), tests over models or matched sets that count every arrangement (`two_group_test`,
`sign_flip_test`), and formulas that refuse collinear columns and gaps (`ols`).
Importing this loads neither torch nor pandas.
"""

from rmnb.stats.clustered import bootstrap, moments, paired_change
from rmnb.stats.concordance import kendall_interval, spearman_interval
from rmnb.stats.estimate import Estimate
from rmnb.stats.over_models import (
    difference_between_groups,
    jackknife_over_models,
    mantel,
    mean_over_models,
    sign_flip_test,
    two_group_test,
)
from rmnb.stats.ranks import mid_ranks, rank_biased_overlap, standardise
from rmnb.stats.regression import Fit, fit_clustered, ols

__all__ = [
    "Estimate",
    "Fit",
    "bootstrap",
    "difference_between_groups",
    "fit_clustered",
    "jackknife_over_models",
    "kendall_interval",
    "mantel",
    "mean_over_models",
    "mid_ranks",
    "moments",
    "ols",
    "paired_change",
    "rank_biased_overlap",
    "sign_flip_test",
    "spearman_interval",
    "standardise",
    "two_group_test",
]
