"""Maps of models: multidimensional scaling of 1 − tau, and the alignment of one map with another."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError


@dataclass(frozen=True)
class Embedding:
    """Points of a map and how well they keep the dissimilarities.

    Attributes
    ----------
    points : (models, dimensions) float64, centred
    stress : float
        Sum over pairs of (distance − dissimilarity)², as scikit-learn reports it.
    stress_1 : float
        Kruskal's stress-1, √(stress / Σ dissimilarity²): 0 is perfect, 0.1 fair, 0.2 poor.
    """

    points: NDArray[np.float64]
    stress: float
    stress_1: float


@dataclass(frozen=True)
class Alignment:
    """`points` turned, mirrored and moved onto the reference; `disparity`, the root mean square distance left."""

    points: NDArray[np.float64]
    disparity: float


def embed(
    dissimilarities: ArrayLike, seed: int = 42, n_components: int = 2, start: ArrayLike | None = None
) -> Embedding:
    """Metric multidimensional scaling (SMACOF) of a dissimilarity matrix, for instance 1 − Kendall's tau.

    As the paper ran it: two dimensions, precomputed dissimilarities, ``random_state=42``, the best of four random
    starts. scikit-learn 1.9 would make one start and 1.10 begin from classical scaling, so both are set here. The
    stopping tolerance is today's 1e-6: since 1.7 the criterion is another one, and the old 1e-3 would stop early.
    Points agree with the paper's up to rotation and reflection, which `align` removes.

    With `start`, (models, dimensions), it begins there, once: for resampled dissimilarities, whose map should differ
    from the first by what was resampled and not by the optimum it happens to fall into.

    Raises
    ------
    InputError
        Not a square, symmetric, finite, non-negative matrix with a zero diagonal.

    References
    ----------
    FAccT25 figure 2B. Borg, Groenen (2005), Modern Multidimensional Scaling, chapters 3 and 8.
    """
    from sklearn.manifold import MDS  # here, because scikit-learn imports pandas

    d = as_dissimilarities(dissimilarities)
    scaling = MDS(
        n_components=n_components,
        metric="precomputed",
        metric_mds=True,
        n_init=4 if start is None else 1,
        init="random",
        normalized_stress="auto",  # raw for metric scaling
        random_state=seed,
    )
    points = np.asarray(scaling.fit_transform(d, init=None if start is None else np.array(start, dtype=float)))
    total = np.sum(d**2) / 2
    stress = float(np.asarray(scaling.stress_))
    return Embedding(points - points.mean(axis=0), stress, float(np.sqrt(stress / total)) if total > 0 else 0.0)


def align(points: ArrayLike, reference: ArrayLike) -> Alignment:
    """Turn, mirror and move `points` onto `reference` by least squares (Procrustes); their scale is kept.

    Both (models, dimensions). Scale is kept because both maps are in the units of one dissimilarity.

    References
    ----------
    Schönemann (1966), A generalized solution of the orthogonal Procrustes problem.
    """
    p, r = (np.asarray(array, dtype=float) for array in (points, reference))
    if p.shape != r.shape or p.ndim != 2:
        raise InputError(f"points and reference must be (models, dimensions) alike, got {p.shape} and {r.shape}")
    from scipy.linalg import orthogonal_procrustes

    centred = p - p.mean(axis=0)
    rotation, _ = orthogonal_procrustes(centred, r - r.mean(axis=0))
    moved = centred @ rotation + r.mean(axis=0)
    return Alignment(moved, float(np.sqrt(np.mean(np.sum((moved - r) ** 2, axis=1)))))


def as_dissimilarities(matrix: ArrayLike, name: str = "dissimilarities") -> NDArray[np.float64]:
    """`matrix` as float64, checked to be square, symmetric, finite, non-negative, zero on the diagonal."""
    d = np.asarray(matrix, dtype=float)
    if d.ndim != 2 or d.shape[0] != d.shape[1] or len(d) < 2:
        raise InputError(f"{name} must be square with two models or more, got shape {d.shape}")
    if not np.isfinite(d).all():
        i, j = np.argwhere(~np.isfinite(d))[0]
        raise InputError(f"{name}[{i}, {j}] is {d[i, j]}: leave that model out or repair its scores")
    if np.abs(d - d.T).max() > 1e-8 * max(1.0, np.abs(d).max()):
        raise InputError(f"{name} must be symmetric")
    if np.abs(np.diag(d)).max() > 1e-8:
        raise InputError(f"{name} must be zero on the diagonal: give 1 - tau, not tau")
    if d.min() < -1e-8:
        raise InputError(f"{name} must not be negative, found {d.min()}")
    return np.clip((d + d.T) / 2, 0, None)
