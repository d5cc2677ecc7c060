"""Estimators and tests: arrays in, frozen dataclasses or arrays out. Imports neither torch nor pandas."""

from rmnb.stats.concordance import kendall_interval
from rmnb.stats.estimate import Estimate
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
    stable_order,
)
from rmnb.stats.resampling import Bootstrap, bootstrap, bootstrap_tau

__all__ = [
    "Bootstrap",
    "Estimate",
    "Moments",
    "PermutationTest",
    "benjamini_hochberg",
    "bootstrap",
    "bootstrap_tau",
    "dense_ranks",
    "holm",
    "kendall_interval",
    "kendall_matrix",
    "kendall_tau",
    "mid_ranks",
    "moments",
    "overlap_matrix",
    "rank_biased_overlap",
    "sign_flip_test",
    "spearman",
    "spearman_matrix",
    "stable_order",
    "two_group_test",
]
