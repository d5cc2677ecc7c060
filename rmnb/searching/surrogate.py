"""A Gaussian process over sequences: what the rewards of some tell of those that are not scored yet.

After Rasmussen and Williams (2006), *Gaussian Processes for Machine Learning*, algorithm 2.1. Two sequences covary as
far as their tokens' embeddings point the same way: a product over positions of 1 + slope · cosine. So a token counts by
itself and together with its neighbours; and as the cosine is linear in a token's vector, so is the expected reward
along one position, and one product rates all tokens of a vocabulary there.
"""

import numpy as np
from scipy.linalg import solve

# How many times as large the covariance of a sequence with itself is as with one whose tokens are all at right angles.
REACH = 9.0
NOISE = 0.03  # variance that the covariance cannot explain, of that of the rewards


class SequenceProcess:
    """A Gaussian process given the rewards of some sequences.

    What it expects of others is in standard deviations of these rewards, from their mean.

    Parameters
    ----------
    vectors
        Of each token that a sequence may hold, as `unit_vectors` gives them, float32 [tokens, dimensions].
    places
        Which of these tokens the sequences hold, integer [sequences, length].
    rewards
        float64 [sequences]
    """

    def __init__(self, vectors: np.ndarray, places: np.ndarray, rewards: np.ndarray):
        self.vectors = vectors
        self.known = vectors[places]
        covariance = _alike(self.known, self.known).prod(0)
        standard = (rewards - rewards.mean()) / (rewards.std() or 1.0)
        self.weights = solve(covariance + NOISE * np.eye(len(places)), standard, assume_a="pos")

    def exchanged(self, places: np.ndarray) -> np.ndarray:
        """Expected reward of each sequence with each token at each position, float32 [sequences, length, tokens]."""
        length = places.shape[1]
        alike = _alike(self.known, self.vectors[places])
        slope = _slope(length)
        levels, slopes = [], []
        for position in range(length):
            elsewhere = np.delete(alike, position, axis=0).prod(0)  # [known, sequences]
            weights = elsewhere.T * self.weights / (1 + slope)
            levels.append(weights.sum(1))
            slopes.append(slope * (weights @ self.known[:, position]))
        rewards = np.concatenate(slopes).astype(np.float32) @ self.vectors.T
        rewards += np.concatenate(levels)[:, None].astype(np.float32)
        return rewards.reshape(length, len(places), -1).swapaxes(0, 1)

    def expected(self, places: np.ndarray) -> np.ndarray:
        """Expected reward of other sequences, float64 [sequences]."""
        return self.weights @ _alike(self.known, self.vectors[places]).prod(0)


def unit_vectors(embeddings: np.ndarray) -> np.ndarray:
    """The direction of each embedding as seen from the mean of all, float32 [tokens, dimensions]."""
    vectors = embeddings - embeddings.mean(0)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True).clip(1e-9)
    return vectors


def _alike(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The covariance's factor at each position, float64 [length, first, second]."""
    cosines = np.einsum("npd,mpd->pnm", first, second, optimize=True)
    slope = _slope(first.shape[1])
    return (1 + slope * cosines.astype(np.float64)) / (1 + slope)


def _slope(length: int) -> float:
    """What a cosine is multiplied with."""
    return REACH ** (1 / length) - 1
