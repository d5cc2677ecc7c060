"""The change of a share between two raters: the interval covers, and the test is McNemar's."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import confusion_matrix
from statsmodels.stats.contingency_tables import mcnemar

from rmnb import stats
from rmnb.errors import TooFewError


@pytest.mark.parametrize(
    ("prompts", "most", "easy", "change"),
    [
        pytest.param(50, 4, 1.0, 0.2, marks=pytest.mark.slow),
        (100, 4, 2.5, 0.3),
        pytest.param(300, 1, 1.5, 0.1, marks=pytest.mark.slow),
    ],
)
def test_of_2000_pairs_of_checkpoints_the_interval_over_prompts_holds_the_change_in_19_of_20(
    prompts, most, easy, change
):
    """Margins of two checkpoints share how hard the pair is and what their prompt has in common."""
    rng, hits = np.random.default_rng(0), []
    spread = np.sqrt(2 * (1 + 0.6**2))
    true_change = norm.cdf((easy + change) / spread) - norm.cdf(easy / spread)
    for _ in range(2000):
        clusters = np.repeat(np.arange(prompts), rng.integers(1, most + 1, prompts))

        def noise(size, clusters=clusters):
            return size * (rng.normal(size=prompts)[clusters] + rng.normal(size=len(clusters)))

        hard = noise(1.0)
        first, second = (easy + shift + hard + noise(0.6) for shift in (0, change))
        found = stats.paired_change(first > 0, second > 0, clusters)
        hits.append(found.ci_low <= true_change <= found.ci_high)
    assert 0.93 <= np.mean(hits) <= 0.97


def test_the_p_value_is_that_of_statsmodels_and_no_interval_is_empty():
    rng = np.random.default_rng(0)
    for n in (5, 40, 400):
        a, b = rng.random((2, n)) < [[0.7], [0.5]]
        table = confusion_matrix(a, b)
        found = stats.paired_change(a, b)
        assert found.value == pytest.approx(b.mean() - a.mean())
        assert found.p_value == pytest.approx(mcnemar(table, exact=True).pvalue)
        turned = stats.paired_change(b, a)
        assert (turned.ci_low, turned.ci_high) == pytest.approx((-found.ci_high, -found.ci_low))
        same = stats.paired_change(a, a)
        assert same.p_value == 1 and -1 <= same.ci_low < same.value == 0 < same.ci_high <= 1
    with pytest.raises(TooFewError):
        stats.paired_change([True, False], [True, True], ["one prompt"] * 2)
