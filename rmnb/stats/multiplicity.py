"""p-values adjusted for the number of tests made."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import as_vector


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    """Holm's adjusted p-values: below alpha, the chance of any false rejection is at most alpha.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.
    """
    p = _checked(p_values)
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(stepped, 1)
    return adjusted


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """Benjamini and Hochberg's adjusted p-values: below alpha, the expected share of false rejections is at most alpha.

    References
    ----------
    Benjamini, Hochberg (1995), Controlling the false discovery rate.
    """
    from scipy.stats import false_discovery_control  # here, because importing scipy.stats takes most of a second

    return false_discovery_control(_checked(p_values))


def _checked(p_values: ArrayLike) -> NDArray[np.float64]:
    p = as_vector(p_values, "p_values")
    if p.min() < 0 or p.max() > 1:
        raise InputError(f"p_values must lie between 0 and 1, got {p.min()} to {p.max()}")
    return p
