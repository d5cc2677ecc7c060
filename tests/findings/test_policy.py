"""What a language model would say: exact against an optimiser and brute force, where answers tie and run out."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp

from rmnb.errors import InputError
from rmnb.findings import policy
from rmnb.findings.policy_files import RUN, load_reference, load_runs
from rmnb.findings.tables import as_table
from rmnb.panels import load_panel
from rmnb.scoring.store import read_scores


def answers(seed: int, count: int = 7, ties: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Log-probabilities and rewards of some answers; with ties, several of them have one reward."""
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=count) * 3
    return log_softmax(rng.normal(size=count) * 2), rewards.round() if ties else rewards


@pytest.mark.parametrize("beta", [0.3, 1, 4])
def test_no_policy_has_a_higher_objective_than_the_optimal_one(beta):
    reference, rewards = answers(0)

    def loss(logits):
        log_policy = log_softmax(logits)
        return -(np.exp(log_policy) @ rewards - beta * policy.kl_divergence(log_policy, reference))

    def gradient(logits):
        log_policy = log_softmax(logits)
        advantage = rewards - beta * (log_policy - reference)
        return np.exp(log_policy) * (np.exp(log_policy) @ advantage - advantage)

    found = minimize(loss, np.zeros(len(rewards)), jac=gradient, method="BFGS", options={"gtol": 1e-9})
    optimum = policy.optimal_policy(reference, rewards, beta)
    assert np.abs(np.exp(log_softmax(found.x)) - np.exp(optimum)).max() < 1e-6
    # What any policy lacks to the optimum is β times its KL divergence from it.
    other = log_softmax(np.arange(len(rewards)) / 3)
    assert loss(other) - loss(optimum) == pytest.approx(beta * policy.kl_divergence(other, optimum), abs=1e-12)


@pytest.mark.parametrize("unit", [1e-3, 1, 1e4])
def test_the_policy_at_a_kl_divergence_has_it_whatever_the_unit_of_the_rewards(unit):
    reference, rewards = answers(1, 500)
    log_policy, beta = policy.policy_at_kl(reference, unit * rewards, 2.5)
    assert policy.kl_divergence(log_policy, reference) == pytest.approx(2.5, abs=1e-9)
    assert np.allclose(log_policy, policy.optimal_policy(reference, unit * rewards, beta))


def test_a_divergence_beyond_the_last_is_refused_in_one_line():
    reference = np.log([0.5, 0.25, 0.25])
    rewards = np.array([0.0, 1, 1])
    with pytest.raises(InputError, match=r"0\.693$"):  # the two best answers hold half of the probability
        policy.policy_at_kl(reference, rewards, 0.7)
    with pytest.raises(InputError, match="between 0 and 0"):
        policy.policy_at_kl(reference, np.zeros(3), 0.1)
    assert policy.frontier(reference, rewards, [0.5, 0.7])["kl"].tolist() == [0.5]
    assert np.allclose(np.exp(policy.optimal_policy(reference, rewards, 0)), [0, 0.5, 0.5])


def test_best_of_n_is_what_a_million_draws_give_where_rewards_tie():
    reference, rewards = answers(3, 9, ties=True)
    assert len(np.unique(rewards)) < 9
    rng = np.random.default_rng(0)
    for n in (2, 5):
        drawn = rng.choice(9, size=(1_000_000, n), p=np.exp(reference))
        winner = drawn[np.arange(len(drawn)), rewards[drawn].argmax(axis=1)]
        shares = np.bincount(winner, minlength=9) / len(drawn)
        assert np.abs(np.exp(policy.best_of(reference, rewards, n)) - shares).max() < 0.002
    assert np.allclose(policy.best_of(reference, rewards, 1), reference)
    rare = np.log([1e-20, 0.5, 0.5])  # less than what rounding leaves of the others
    for rewards in ([0, 1, 2], [5, 1, 2]):
        assert np.allclose(policy.best_of(rare, np.array(rewards), 1), rare)
    assert policy.best_of(rare, np.array(rewards), 4)[0] == pytest.approx(np.log(4e-20))


def test_best_of_many_keeps_its_digits_and_loses_to_the_frontier():
    reference, rewards = answers(4, 2000)
    for n in (4, 256, 10**9):
        best = policy.best_of(reference, rewards, n)
        assert logsumexp(best) == pytest.approx(0, abs=1e-9)
        kl = policy.kl_divergence(best, reference)
        assert kl < np.log(n) - (n - 1) / n + 1e-12  # the usual formula is an upper bound
        highest = policy.frontier(reference, rewards, [kl])
        assert highest.empty or np.exp(best) @ rewards < highest["reward"].item()


def test_answers_that_the_language_model_never_gives_stay_impossible():
    reference = np.append(answers(5)[0], -np.inf)
    rewards = np.append(answers(5)[1], 100)
    for log_policy in (
        policy.optimal_policy(reference, rewards, 0.5),
        policy.optimal_policy(reference, rewards, 0),
        policy.policy_at_kl(reference, rewards, 0.1)[0],
        policy.best_of(reference, rewards, 3),
    ):
        assert log_policy[-1] == -np.inf
        assert np.isfinite(policy.kl_divergence(log_policy, reference))
    assert policy.kl_divergence(np.log(np.full(8, 1 / 8)), reference) == np.inf


def test_weights_of_sampled_answers_find_the_optimum_and_say_how_many_they_are_worth():
    reference, rewards = answers(6, 20)
    drawn = np.random.default_rng(0).choice(20, size=200_000, p=np.exp(reference))
    weights, worth = policy.importance_weights(rewards[drawn], 3)
    shares = np.bincount(drawn, weights, minlength=20)
    assert np.abs(shares - np.exp(policy.optimal_policy(reference, rewards, 3))).max() < 0.01
    assert 1 < worth < 200_000
    assert policy.importance_weights(np.zeros(256), 1)[1] == pytest.approx(256)


@pytest.fixture(scope="module")
def shipped():
    """Of the demo panel: scans of SmolLM2's graders, and what SmolLM2 says before training."""
    panel = load_panel("demo")
    scans = {}
    for name in ("smollm2-values", "smollm2-harmless", "smollm2-mixed", "smollm2-mixed-seed2"):
        scans[name] = as_table({"greatest": read_scores(panel, name, "greatest")})
    return scans, load_reference(panel, "smollm2-135m-instruct", "greatest", whole=True)


@pytest.mark.parametrize(
    ("model", "nats", "shares"),
    [
        ("smollm2-values", 2, {"love": 0.67, "joy": 0.07}),
        ("smollm2-harmless", 4, {"no": 0.65}),
        ("smollm2-mixed", 8, {"joy": 0.78}),
    ],
)
def test_whole_answers_of_the_demo_models_are_the_known_ones(shipped, model, nats, shares):
    scans, before = shipped
    table = scans[model].assign(log_ref=before["first"] + before["end"]).query("kind != 'special'")
    assert np.exp(logsumexp(table["log_ref"])) == pytest.approx(3.0e-4, abs=1e-5)
    reference = table["log_ref"].to_numpy() - logsumexp(table["log_ref"])
    log_policy, _ = policy.policy_at_kl(reference, table["greatest"].to_numpy(), nats)
    words = table.assign(share=np.exp(log_policy)).groupby("word")["share"].sum()
    assert {word: words[word] for word in shares} == pytest.approx(shares, abs=0.01)


def test_shipped_trainings_ended_where_is_recorded_and_lie_under_the_frontier(shipped):
    scans, before = shipped
    reference = before["first"].to_numpy()
    ways, ends = load_runs("demo")
    assert len(ends.columns) == 16 and (ways.groupby(RUN)["step"].max() == 200).all()
    for run, log_policy in ends.items():
        rewards = scans[run[0]]["greatest"].to_numpy()
        _, beta = policy.policy_at_kl(reference, rewards, run[1])
        kl = policy.kl_divergence(log_policy.to_numpy(), reference)
        reward = np.exp(log_policy) @ rewards
        last = ways.set_index(RUN).loc[run].iloc[-1]
        assert (last["kl"], last["reward"], last["beta"]) == pytest.approx((kl, reward, beta), abs=1e-4)
        assert reward < policy.frontier(reference, rewards, [kl])["reward"].item()
