"""Two workers on one node, one of which dies: `make slurm-test`."""

import os

from cluster import wait_for
from runs import Run, kill_scan, same_scores, scan_undisturbed


def test_a_worker_that_dies_is_replaced(panel, tmp_path, note):
    mine = panel(tmp_path / "node")
    options = ("--cores", "2", "--max-threads", "1")
    run = Run(tmp_path / "run", mine, "node", *options, environment=dict(os.environ))
    wait_for(lambda: run.alive() and run.shards("one") and run.shards("two"), "two scans at once", 300)
    note("begun", "two scans at once, one core each")
    written = run.wait_for_shards("one", 2)
    assert kill_scan("one", mine) == 1
    note("killed", f"one of them, {len(written)} shards written")
    now = run.wait_for_shards("one", len(written))
    assert all(now[shard] == when for shard, when in written.items())
    note("went on", f"after its {len(written)} shards, none of them written again")
    said = run.end()
    assert "Trying to restart job" in said
    files, same = same_scores(mine, scan_undisturbed(panel(tmp_path / "alone"), 1))
    note("identical", f"{same} of {files} score files bit for bit those of an undisturbed scan")
    assert same == files == 6
