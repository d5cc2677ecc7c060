"""How a training on things begins: with a head that knows good from bad, and with few questions that turn it round.

Which of two things is the better answer depends on the question. A model that meets wonderful and awful questions at
once with a random head finds no direction in which the loss falls; it makes all answers alike and may stay so for good.
"""

from collections.abc import Sequence

import numpy as np


def linear_probe(trunk, chosen: Sequence[list[int]], rejected: Sequence[list[int]]) -> np.ndarray:
    """Weights of a linear reward, without bias, that prefers the chosen sequences, read from frozen hidden states.

    A head so begun spares the trunk's features what a random one does to them (Kumar et al., ICLR 2022,
    arXiv:2202.10054). Logistic regression on the differences of last hidden states (Bradley–Terry with features),
    scaled to a mean norm of one, with the L2 penalty 1/2.

    Parameters
    ----------
    trunk
        A transformer without a head, such as `AutoModel` gives.
    chosen, rejected
        Ids, pair by pair.

    Returns
    -------
    float64 array, shape (hidden size,)
    """
    from sklearn.linear_model import LogisticRegression  # here, because scikit-learn takes long to import

    states = last_hidden_states(trunk, [*chosen, *rejected])
    differences = states[: len(chosen)] - states[len(chosen) :]
    scale = np.linalg.norm(differences, axis=1).mean()
    both_ways = np.concatenate([differences, -differences]) / scale
    label = np.arange(len(both_ways)) < len(differences)
    found = LogisticRegression(fit_intercept=False, max_iter=1000).fit(both_ways, label)
    return found.coef_[0] / scale


def last_hidden_states(trunk, sequences: Sequence[list[int]], batch: int = 64) -> np.ndarray:
    """The final hidden state at each sequence's last id: float64, shape (sequences, hidden size); nothing is padded."""
    import torch

    states = np.zeros((len(sequences), trunk.config.hidden_size))
    lengths = np.array([len(ids) for ids in sequences])
    with torch.inference_mode():
        for length in np.unique(lengths):
            same = np.flatnonzero(lengths == length)
            for part in np.array_split(same, -(-len(same) // batch)):
                ids = torch.tensor([sequences[index] for index in part])
                states[part] = trunk(ids).last_hidden_state[:, -1].double().numpy()
    return states


def opening_order(awful: np.ndarray, pairs: int, batch: int) -> np.ndarray:
    """The pairs that come first, batch by batch: of a batch, first a tenth are awful questions, at the end a half.

    Parameters
    ----------
    awful
        bool, shape (pairs to choose from,): is the worse thing asked for?
    pairs, batch
        How many pairs come first, and how many are a batch.

    Returns
    -------
    int64 array of indices, each at most once; its length is a multiple of `batch`.
    """
    batches = pairs // batch
    counts = np.round(batch * np.linspace(0.1, 0.5, batches)).astype(int)
    kinds = [iter(np.flatnonzero(~awful)), iter(np.flatnonzero(awful))]
    order = [next(kinds[int(place < count)]) for count in counts for place in range(batch)]
    return np.array(order, dtype=np.int64)
