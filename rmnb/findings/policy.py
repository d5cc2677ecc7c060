"""What a language model would say if it were trained on a reward model's rewards: exact, where all answers are known.

Everything here takes two arrays over the same answers: natural log-probabilities of the language model that training
starts from (π_ref, float64, summing to one) and rewards in the reward model's own unit. KL divergences are in nats.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import logsumexp

from rmnb.errors import InputError


def optimal_policy(log_reference: np.ndarray, rewards: np.ndarray, beta: float) -> np.ndarray:
    """The policy that maximises E[r] − β KL(π‖π_ref): log π(y) = log π_ref(y) + r(y)/β − log Z.

    Parameters
    ----------
    beta
        Above 0, in units of the reward a nat. 0: its limit, π_ref among the answers with the highest reward.

    References
    ----------
    Korbak, Perez and Buckley 2022, arXiv 2205.11275; Rafailov et al. 2023, arXiv 2305.18290, equation 4.
    """
    best = rewards[np.isfinite(log_reference)].max()
    if beta == 0:
        shift = np.where(rewards == best, 0, -np.inf)
    else:
        shift = (rewards - best) / beta
    tilted = log_reference + shift
    return tilted - logsumexp(tilted)


def kl_divergence(log_policy: np.ndarray, log_reference: np.ndarray) -> float:
    """KL(π‖π_ref) in nats; infinite where the policy gives an answer that the reference never gives."""
    given = log_policy > -np.inf
    return float(np.exp(log_policy[given]) @ (log_policy[given] - log_reference[given]))


def policy_at_kl(log_reference: np.ndarray, rewards: np.ndarray, nats: float) -> tuple[np.ndarray, float]:
    """The optimal policy whose KL divergence from π_ref is `nats`, and its β.

    Raises
    ------
    InputError
        The answers with the highest reward are nearer: no β leads so far.
    """
    last = kl_divergence(optimal_policy(log_reference, rewards, 0), log_reference)
    if not 0 < nats < last:
        raise InputError(f"no optimum lies {nats:g} nats from the language model: choose between 0 and {last:.3f}")
    spread = np.ptp(rewards[np.isfinite(log_reference)])

    def excess(log_inverse: float) -> float:
        log_policy = optimal_policy(log_reference, rewards, spread * np.exp(-log_inverse))
        return kl_divergence(log_policy, log_reference) - nats

    beta = float(spread * np.exp(-brentq(excess, -30, 30, xtol=1e-13)))  # pyright: ignore[reportOperatorIssue]
    return optimal_policy(log_reference, rewards, beta), beta


def frontier(log_reference: np.ndarray, rewards: np.ndarray, nats: Sequence[float]) -> pd.DataFrame:
    """The highest reward at each KL divergence, which no policy exceeds: DataFrame kl, beta, reward, answers.

    ``answers`` is the effective number of answers. KL divergences beyond the last are left out.
    """
    rows = []
    last = kl_divergence(optimal_policy(log_reference, rewards, 0), log_reference)
    for kl in nats:
        if 0 < kl < last:
            policy, beta = policy_at_kl(log_reference, rewards, kl)
            rows.append((kl, beta, float(np.exp(policy) @ rewards), effective_answers(policy)))
    return pd.DataFrame(rows, columns=["kl", "beta", "reward", "answers"])


def best_of(log_reference: np.ndarray, rewards: np.ndarray, n: int) -> np.ndarray:
    """Log-probability that each answer is the best of n independent ones; of equal rewards, the first drawn wins.

    P(y) = π_ref(y) (F(y)ⁿ − F(y−)ⁿ) / (F(y) − F(y−)), with F the distribution function of rewards under π_ref.
    """
    levels, level = np.unique(rewards, return_inverse=True)
    log_mass = np.full(len(levels), -np.inf)
    np.logaddexp.at(log_mass, level, log_reference)
    above = np.append(np.cumsum(np.exp(log_mass)[:0:-1])[::-1], 0)  # P(r > level)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Summed from the end where there is less, so that neither end loses digits.
        log_cdf = np.where(above < 0.5, np.log1p(-above), np.logaddexp.accumulate(log_mass))
        share = np.exp(log_mass - log_cdf)  # of a level in what is at most as good
        # (1 - (1 - share)ⁿ) / share, which is n where a level has next to no mass
        draws = np.where(share < 1e-12, n, -np.expm1(n * np.log1p(-share)) / share)
        log_win = (n - 1) * log_cdf + np.log(draws)
    return np.where(np.isfinite(log_reference), log_reference + log_win[level], -np.inf)


def effective_answers(log_policy: np.ndarray) -> float:
    """The exponential of the entropy: of how many equally likely answers the policy is as varied as."""
    given = log_policy[log_policy > -np.inf]
    return float(np.exp(-np.exp(given) @ given))


def total_variation(log_policy: np.ndarray, other: np.ndarray) -> float:
    """The share of answers that would have to change to make one policy the other, 0 to 1."""
    return float(np.abs(np.exp(log_policy) - np.exp(other)).sum() / 2)


def importance_weights(rewards: np.ndarray, beta: float) -> tuple[np.ndarray, float]:
    """Weights that make answers sampled from π_ref stand for the optimal policy, and how many answers they are worth.

    Self-normalised importance sampling: w ∝ exp(r/β), with the effective sample size 1 / Σ w² (Kong 1992).
    """
    log_weights = np.asarray(rewards, float) / beta
    weights = np.exp(log_weights - float(logsumexp(log_weights)))  # pyright: ignore[reportArgumentType]
    return weights, float(1 / (weights @ weights))
