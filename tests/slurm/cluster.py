"""A SLURM cluster of one node on this machine: its own directory, ports and keys, no accounting, no containers."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SEARCHED = f"{os.environ['PATH']}:/usr/sbin:/sbin"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue")
MISSING = "no SLURM on this machine: apt-get install -y --no-install-recommends slurm-wlm munge"
# The memory is not there: a scan asks for that of a real model.
SETTINGS = """\
ClusterName=here
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket,cred_expire=15
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=64000 State=UNKNOWN
PartitionName=here Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


@contextlib.contextmanager
def cluster(directory: Path, cpus: int) -> Iterator[dict[str, str]]:
    """A controller and a node of some CPUs, whose processes end with the ``with`` block: the environment to use them.

    Parameters
    ----------
    directory
        Empty, with a short path (a socket lies in it).
    cpus
        Of the node, as many as the machine has or fewer.
    """
    environment = os.environ | {"SLURM_CONF": str(directory / "slurm.conf"), "PATH": f"{directory}:{SEARCHED}"}
    host = socket.gethostname().partition(".")[0]
    user, ports = getpass.getuser(), _free_ports(2)
    settings = SETTINGS.format(directory=directory, host=host, user=user, ports=ports, cpus=cpus)
    (directory / "slurm.conf").write_text(settings)
    # Snakemake's executor hides SLURM_CONF from the srun that it calls in a job.
    (directory / "srun").write_text(f'#!/bin/sh\nSLURM_CONF={directory}/slurm.conf exec {shutil.which("srun")} "$@"\n')
    (directory / "srun").chmod(0o755)
    (directory / "munge.key").write_bytes(os.urandom(128))
    (directory / "munge.key").chmod(0o600)
    files = {"key": "key-file", "seed": "seed-file", "pid": "pid-file", "socket": "socket"}
    named = [f"--{option}={directory}/munge.{name}" for name, option in files.items()]
    with contextlib.ExitStack() as running:

        def start(name: str, *options: str) -> None:
            log = running.enter_context(open(directory / f"{name}.out", "ab"))
            program = shutil.which(name, path=SEARCHED) or name
            daemon = subprocess.Popen([program, *options], stdout=log, stderr=log, env=environment)
            running.callback(_end, daemon)

        start("munged", "--foreground", "--force", *named)
        wait_for((directory / "munge.socket").exists, "munged")
        start("slurmctld", "-D", "-c")
        start("slurmd", "-D")
        up = ("idle", "mixed", "allocated")
        wait_for(lambda: ask(environment, "sinfo", "--noheader", "--format=%T").strip() in up, "the node to be up")
        running.callback(ask, environment, "scancel", "--me", "--full", "--signal=KILL")
        yield environment


def ask(environment: dict[str, str], *words: str) -> str:
    """What one of SLURM's own commands answers, empty while the controller does not."""
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60).stdout


def missing() -> list[str]:
    """The programs that are not installed."""
    return [name for name in PROGRAMS if not shutil.which(name, path=SEARCHED)]


def _end(daemon: subprocess.Popen) -> None:
    daemon.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        daemon.wait(10)
    daemon.kill()


def wait_for(happened: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Look ten times a second until something has happened.

    Raises
    ------
    TimeoutError
        It has not.
    """
    end = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.1)


def _free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
