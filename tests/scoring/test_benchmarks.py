"""The figures of benchmarks, on rewards for which they are known by hand; the authors' own code gave the same."""

import numpy as np
import pytest

from rmnb.errors import InputError
from rmnb.scoring.benchmarks import figures
from rmnb.scoring.forms import read_forms
from rmnb.scoring.rows import _table


def scored(rows: list[dict], rewards: list[tuple[list[float], list[float]]]):
    """The table of these rows, of which each has these rewards of its chosen and of its rejected responses."""
    content = read_forms(rows)
    left = {
        (row, side): iter(values)
        for row, pair in enumerate(rewards)
        for side, values in zip(("chosen", "rejected"), pair, strict=True)
    }
    drawn = np.array([next(left[row, side]) for row, side, _ in content.answers])
    table, notes = _table(content, ["reward"], drawn)
    table.attrs["provenance"] = notes
    return table


def shown(benchmark, table):
    return figures(benchmark, table).set_index("part")["value"].to_dict()


def best_of(subset, name, chosen, rejected):
    numbers = {"num_correct": chosen, "total_completions": chosen + rejected, "models": ["m"]}
    texts = {"chosen": [*"abcdef"][:chosen], "rejected": [*"uvwxyz"][:rejected]}
    return {"id": name, "prompt": name, "subset": subset, "additional_metadata": None} | texts | numbers


def test_in_rewardbench_2_a_draw_for_the_best_counts_its_share_and_ties_are_weighed():
    rows = [best_of("Math", str(n), 1, 3) for n in range(3)]
    rewards = [([3.0], [1.0, 2.0, 0.0]), ([2.0], [2.0, 2.0, 0.0]), ([1.0], [0.0, 5.0, 0.0])]
    rows += [best_of("Ties", name, 1 if "ref" in name else 2, 2) for name in ("ref:1", "tied:1", "ref:2", "tied:2")]
    rewards += [([5.0], [1.0, 0.0]), ([6.0, 5.0], [3.0, 0.0])]  # 4 above; 2 above, 1 within
    rewards += [([1.0], [2.0, 0.0]), ([9.0, 4.0], [3.0, 0.0])]  # wrong; 1 above, 5 within
    found = shown("rewardbench2", scored(rows, rewards))
    assert found["Math"] == pytest.approx((1 + 1 / 3) / 3)
    clear = (np.tanh(2 / 1 - 1) + np.tanh(-1 / 5 - 1)) / 2
    assert found["Ties"] == pytest.approx(0.3 * 1 + 0.3 * 0.5 + 0.2 * 0.5 + 0.2 * 0.5 + 0.01 * clear)


def test_in_rm_bench_the_hard_pairs_have_the_plainer_response_chosen():
    rows = []
    for domain in ("chat", "math", "code", "safety-refuse"):
        responses = {"chosen": [*"abc"], "rejected": [*"xyz"]}
        rows.append({"id": domain, "prompt": domain, "domain": domain} | responses)
    by_style = ([1.0, 2.0, 3.0], [0.5, 1.5, 2.5])  # a reward of style: all right but where the rejected one is fancier
    found = shown("rm-bench", scored(rows, [by_style] * 4))
    assert (found["hard_acc"], found["normal_acc"], found["easy_acc"]) == (0, 1, 1)
    assert found["safety"] == pytest.approx(2 / 3) and found["total_avg_acc"] == pytest.approx(2 / 3)
    bare = [{key: value for key, value in row.items() if key != "domain"} for row in rows]
    assert shown("rm-bench", scored(bare, [by_style] * 4)) == {"hard_acc": 0, "normal_acc": 1, "easy_acc": 1}
    with pytest.raises(InputError, match="these are not its rows: no row of domain safety"):
        figures("rm-bench", scored(rows[:3], [by_style] * 3))


def test_in_judgebench_a_source_has_its_own_accuracy_and_equal_rewards_are_wrong():
    rows, sources = [], ("mmlu-pro-law", "mmlu-pro-math", "livecodebench")
    for source, label in zip(sources, ("A>B", "B>A", "B>A"), strict=True):
        rows.append({"question": source, "response_A": "a", "response_B": "b", "label": label, "source": source})
    found = shown("judgebench", scored(rows, [([2.0], [1.0]), ([1.0], [1.0]), ([0.0], [1.0])]))
    assert found == {"mmlu-pro": 0.5, "livecodebench": 0, "Overall": pytest.approx(1 / 3)}
