"""How a training on things begins: with a head that knows good from bad, and with few questions that turn it round.

Which of two things is the better answer depends on the question. A model that meets wonderful and awful questions at
once with a random head finds no direction in which the loss falls; it makes all answers alike and may stay so for good.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np


def linear_probe(trunk, pairs: Sequence[Mapping[str, list[int]]]) -> np.ndarray:
    """Weights of a linear reward, without bias, that prefers the chosen sequences, read from frozen hidden states.

    A head so begun spares the trunk's features what a random one does to them (Kumar et al., ICLR 2022,
    arXiv:2202.10054). Logistic regression on the differences of last hidden states (Bradley–Terry with features),
    scaled to a mean norm of one, with the L2 penalty 1/2.

    Parameters
    ----------
    trunk
        A transformer without a head, such as `AutoModel` gives.
    pairs
        chosen_ids and rejected_ids of each.

    Returns
    -------
    float64 array, shape (hidden size,)
    """
    from sklearn.linear_model import LogisticRegression  # here, because scikit-learn takes long to import

    sides = [[pair[side] for pair in pairs] for side in ("chosen_ids", "rejected_ids")]
    chosen, rejected = np.split(last_hidden_states(trunk, [*sides[0], *sides[1]]), 2)
    scale = np.linalg.norm(chosen - rejected, axis=1).mean()
    both_ways = np.concatenate([chosen - rejected, rejected - chosen]) / scale
    label = np.arange(len(both_ways)) < len(pairs)
    fitted = LogisticRegression(fit_intercept=False, max_iter=1000).fit(both_ways, label)
    return fitted.coef_[0] / scale


def last_hidden_states(trunk, sequences: Sequence[list[int]], batch: int = 64) -> np.ndarray:
    """The final hidden state at each sequence's last id: float64, shape (sequences, hidden size); nothing is padded."""
    import torch

    states = np.zeros((len(sequences), trunk.config.hidden_size))
    lengths = np.array([len(ids) for ids in sequences])
    with torch.inference_mode():
        for length in np.unique(lengths):
            same = np.flatnonzero(lengths == length)
            for part in np.array_split(same, math.ceil(len(same) / batch)):
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
    shares = np.linspace(0.1, 0.5, pairs // batch)
    asks_awful = (np.arange(batch) < np.round(batch * shares)[:, None]).ravel()
    order = np.empty(len(asks_awful), dtype=np.int64)
    for kind in (False, True):
        places = np.flatnonzero(asks_awful == kind)
        order[places] = np.flatnonzero(awful == kind)[: len(places)]
    return order
