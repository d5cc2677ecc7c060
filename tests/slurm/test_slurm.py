"""The profile for SLURM on a real cluster of one node: `make slurm-test`."""

import os
import tempfile
from pathlib import Path

import pytest
from cluster import Cluster, wait_for
from runs import Run, kill_scan, same_scores, scan_undisturbed

CPUS = min(2, os.cpu_count() or 1)


@pytest.fixture
def cluster():
    with tempfile.TemporaryDirectory(prefix="rmnb-") as directory, Cluster(Path(directory), CPUS) as running:
        yield running


def test_a_job_and_a_node_that_die_cost_no_more_than_a_shard(cluster, panel, tmp_path, note):
    mine = panel(tmp_path / "cluster")
    options = ("--max-threads", str(CPUS), "--slurm-init-seconds-before-status-checks", "5", "--latency-wait", "10")
    run = Run(tmp_path / "run", mine, "slurm", *options, environment=cluster.environment)

    def running(model: str, but: str = "") -> str:
        """The job that scans a model, once it runs."""
        found: list[str] = []

        def look() -> list[str]:
            run.alive()
            found[:] = [i for i, job in cluster.jobs("RUNNING").items() if model in job["Comment"] and i != but]
            return found

        wait_for(look, f"a job of {model}", 300)
        return found[0]

    wait_for(lambda: run.alive() and len(cluster.jobs()) == 2, "two jobs")
    asked = cluster.jobs()
    assert {job["NumCPUs"] for job in asked.values()} == {str(CPUS)}
    assert {job["tres-per-job"] for job in asked.values()} == {"N/A"}
    note("submitted", f"{len(asked)} jobs (a model with three prompts each), {CPUS} CPUs each, no GPU asked for")

    wait_for(lambda: run.alive() and cluster.jobs("RUNNING"), "the first job to run")
    begun = next(iter(cluster.jobs("RUNNING").values()))["Comment"]
    one, two = ("one", "two") if "one" in begun else ("two", "one")
    first = running(one)
    written = run.wait_for_shards(one, 2)
    assert kill_scan(one, mine) == 1
    note("killed", f"the scan in job {first}, {len(written)} shards written")
    wait_for(lambda: cluster.jobs()[first]["State"] == "FAILED", "the job to have failed")

    second = running(two)
    written_two = run.wait_for_shards(two, 2)
    cluster.kill_node()
    note("killed", f"the node's daemon with job {second}, {len(written_two)} shards written")
    wait_for(lambda: cluster.node().startswith("down"), "the controller to miss the node", 120)
    wait_for(lambda: cluster.jobs()[second]["RestartCnt"] == "1", "the job to be requeued")
    note("requeued", f"job {second} by SLURM, its node is {cluster.node()}")
    cluster.start_node()
    note("node back", cluster.node())

    again = running(one, but=first)
    note("resubmitted", f"job {first} by Snakemake as job {again}")
    for job, model, before in ((again, one, written), (second, two, written_two)):
        running(model, but=first)
        now = run.wait_for_shards(model, len(before))
        assert all(now[shard] == when for shard, when in before.items())
        note("went on", f"job {job} after its {len(before)} shards, none of them written again")
    run.end()
    states = {i: job["State"] for i, job in cluster.jobs().items()}
    note("ended", ", ".join(f"job {i} {state}" for i, state in states.items()))
    files, same = same_scores(mine, scan_undisturbed(panel(tmp_path / "alone"), CPUS))
    note("identical", f"{same} of {files} score files bit for bit those of an undisturbed scan")
    assert same == files == 6
