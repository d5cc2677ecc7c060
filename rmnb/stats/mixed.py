"""Claims about many models: mixed models, factorial designs and the mean over models."""

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rmnb.errors import InputError
from rmnb.stats.estimate import Estimate, as_vector, check_same_length, cluster_codes, estimate_from_error
from rmnb.stats.regression import INTERCEPT


@dataclass(frozen=True)
class MixedModel:
    """A linear mixed model fitted by REML; ``fit["name"]`` is the `Estimate` of one fixed effect.

    Attributes
    ----------
    names : tuple of str
    coefficients, standard_errors, df : (k,) float64
        `df` as R's nlme counts it: by groups for what does not vary within them or has a random slope, by
        observations for the rest.
    group_covariance : (r, r) float64, of the random intercept and slopes
    residual_variance : float
    log_likelihood : float, restricted
    converged : bool
    n, n_groups : int
    confidence : float
    """

    names: tuple[str, ...]
    coefficients: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    df: NDArray[np.float64]
    group_covariance: NDArray[np.float64]
    residual_variance: float
    log_likelihood: float
    converged: bool
    n: int
    n_groups: int
    confidence: float

    def __getitem__(self, name: str) -> Estimate:
        if name not in self.names:
            raise InputError(f"no coefficient {name!r}: there are {', '.join(self.names)}")
        k = self.names.index(name)
        return estimate_from_error(
            self.coefficients[k],
            self.standard_errors[k],
            self.n,
            self.n_groups,
            df=self.df[k],
            confidence=self.confidence,
        )


def factorial(**factors: ArrayLike) -> dict[str, NDArray[np.float64]]:
    """Columns of a full factorial design in treatment coding: ``factorial(base=…, category=…, framing=…)``.

    The first label to appear in each factor is its reference. A column of an interaction is named like
    ``base[Llama] x category[communion]``. The coefficient of the highest interaction does not depend on the coding
    except for its sign; lower ones are effects at the references.
    """
    main: list[dict[str, np.ndarray]] = []
    for name, values in factors.items():
        labels = np.asarray(values).astype(str)
        levels = list(dict.fromkeys(labels.tolist()))
        if len(levels) < 2:
            raise InputError(f"factor {name} has one level only ({', '.join(levels)}): leave it out")
        main.append({f"{name}[{level}]": (labels == level).astype(float) for level in levels[1:]})
    check_same_length(**{name: np.asarray(values) for name, values in factors.items()})
    columns: dict[str, np.ndarray] = {}
    for order in range(1, len(main) + 1):
        for chosen in itertools.combinations(main, order):
            for names in itertools.product(*chosen):
                parts = [columns_of[name] for columns_of, name in zip(chosen, names, strict=True)]
                columns[" x ".join(names)] = np.prod(parts, axis=0)
    return columns


def mixed_model(
    response: ArrayLike,
    predictors: Mapping[str, ArrayLike],
    groups: ArrayLike,
    random_slopes: Sequence[str] = (),
    confidence: float = 0.95,
) -> MixedModel:
    """Linear mixed model, REML: fixed effects of `predictors`, a random intercept and `random_slopes` a group.

    ``mixed_model(median, factorial(base=…, category=…, framing=…), model)`` is the papers'
    ``lme(median ~ base * category * framing, random = ~1 | model)``. Its random intercept cancels out of every contrast
    within a model, so it takes prompts for independent evidence on how bases differ: compare with
    `two_group_test` of one contrast a model, which does not.

    Raises
    ------
    InputError
        Different lengths, values that are not finite, predictors that determine one another, fewer than two groups.

    References
    ----------
    Laird, Ware (1982), Random-effects models for longitudinal data. ICLR26 section on off-the-shelf models.
    statsmodels MixedLM.
    """
    from statsmodels.regression.mixed_linear_model import MixedLM  # here, because statsmodels imports pandas

    y = as_vector(response, "response", minimum=3)
    columns = {INTERCEPT: np.ones(len(y)), **{name: as_vector(values, name) for name, values in predictors.items()}}
    check_same_length(response=y, **columns)
    codes, n_groups = cluster_codes(groups, len(y))
    if n_groups < 2:
        raise InputError("a mixed model needs two groups or more")
    unknown = set(random_slopes) - set(columns)
    if unknown:
        raise InputError(f"random slopes {', '.join(sorted(unknown))} are not among the predictors")
    names = tuple(columns)
    design = np.column_stack(list(columns.values()))
    if np.linalg.matrix_rank(design) < len(names):
        raise InputError(f"predictors {', '.join(names[1:])} determine one another: drop one")
    random = np.column_stack([columns[name] for name in (INTERCEPT, *random_slopes)])
    # On the raw scale the optimiser stops early for rewards of 0.01 and for ranks of 1,000 alike.
    unit = y.std() or 1.0
    with warnings.catch_warnings(record=True):  # reported through `converged`
        warnings.simplefilter("always")
        fit = MixedLM(y / unit, design, codes, exog_re=random).fit(reml=True)
        errors = np.asarray(fit.bse_fe)  # warns of variances estimated as zero, which have no error
    k = len(names)
    return MixedModel(
        names,
        np.asarray(fit.fe_params) * unit,
        errors[:k] * unit,
        _degrees_of_freedom(design, random[:, 1:], codes, n_groups),
        np.atleast_2d(np.asarray(fit.cov_re)) * unit**2,
        float(fit.scale) * unit**2,
        float(fit.llf) - (len(y) - k) * np.log(unit),
        bool(fit.converged),
        len(y),
        n_groups,
        confidence,
    )


def _degrees_of_freedom(
    design: np.ndarray, slopes: np.ndarray, codes: np.ndarray, n_groups: int
) -> NDArray[np.float64]:
    """nlme's rule (Pinheiro, Bates 2000, section 2.4.2), in which the intercept counts as varying within groups.

    An effect whose slope is random varies between groups, as does its interaction with what is constant within them:
    ten models are ten observations of it.
    """
    whole = np.ones((len(codes), 1))
    between = _proportional_within_groups(design, whole, codes, n_groups)
    between[0] = False
    df = np.full(design.shape[1], len(codes) - n_groups - np.count_nonzero(~between) + 1.0)
    df[between] = n_groups - 1 - between.sum()
    for slope in slopes.T:
        carried = _proportional_within_groups(design, slope[:, None], codes, n_groups) & ~between
        carried[0] = False
        df[carried] = n_groups - carried.sum()
    if df.min() < 1:
        raise InputError(f"too few observations: {len(codes)} in {n_groups} groups for {design.shape[1]} coefficients")
    return df


def _proportional_within_groups(
    design: np.ndarray, column: np.ndarray, codes: np.ndarray, n_groups: int
) -> NDArray[np.bool_]:
    """Which columns of the design are, within every group, a multiple of the given column."""

    def sums(values: np.ndarray) -> np.ndarray:
        return np.array([values[codes == group].sum(axis=0) for group in range(n_groups)])

    gap = sums(design**2) * sums(column**2) - sums(design * column) ** 2  # Cauchy and Schwarz
    return np.all(gap <= 1e-9 * sums(design**2) * sums(column**2), axis=0)


def mean_over_models(values: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Mean of one number a model (a slope, a gap, a correlation) with its t interval over models.

    The interval speaks of models like these, not of these models' words: models differ by far more than words scatter.
    """
    x = as_vector(values, "values", minimum=2)
    error = x.std(ddof=1) / np.sqrt(len(x))
    return estimate_from_error(x.mean(), error, len(x), len(x), df=len(x) - 1, confidence=confidence)


def over_models(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of one estimate a model, with its interval over models; of a single model that model's own estimate."""
    if not estimates:
        raise InputError("no model has this estimate: there is no mean")
    return mean_over_models([one.value for one in estimates]) if len(estimates) > 1 else estimates[0]


def difference_between_groups(values: ArrayLike, in_first: ArrayLike, confidence: float = 0.95) -> Estimate:
    """Mean of the first group of models less mean of the second, one number a model, with Welch's t interval.

    Raises
    ------
    InputError
        Fewer than two models in a group, different lengths, values that are not finite.

    References
    ----------
    Welch (1947), The generalization of Student's problem when several different population variances are involved.
    """
    x = as_vector(values, "values", minimum=4)
    first = np.asarray(in_first, dtype=bool)
    check_same_length(values=x, in_first=first)
    groups = x[first], x[~first]
    if min(map(len, groups)) < 2:
        raise InputError(f"an interval needs two models in each group, got {len(groups[0])} and {len(groups[1])}")
    parts = np.array([group.var(ddof=1) / len(group) for group in groups])
    variance = parts.sum()
    sizes = np.array([len(group) for group in groups])
    df = variance**2 / np.sum(parts**2 / (sizes - 1)) if variance > 0 else len(x) - 2
    value = groups[0].mean() - groups[1].mean()
    return estimate_from_error(value, float(np.sqrt(variance)), len(x), len(x), df=float(df), confidence=confidence)
