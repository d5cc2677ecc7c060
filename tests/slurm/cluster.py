"""A SLURM cluster of one node on this machine: its own directory, ports and keys, no accounting, no containers."""

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
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


class Cluster:
    """A controller and a node of some CPUs; on leaving the ``with`` block their processes end.

    Parameters
    ----------
    directory
        Empty, with a short path (a socket lies in it).
    cpus
        Of the node, as many as the machine has or fewer.
    """

    def __init__(self, directory: Path, cpus: int):
        self.directory, self.cpus = directory, cpus
        self.environment = os.environ | {"SLURM_CONF": str(directory / "slurm.conf"), "PATH": f"{directory}:{SEARCHED}"}
        self._daemons: dict[str, subprocess.Popen] = {}

    def __enter__(self) -> "Cluster":
        host = socket.gethostname().partition(".")[0]
        values = {"host": host, "ports": _free_ports(2), "user": getpass.getuser(), "cpus": self.cpus}
        (self.directory / "slurm.conf").write_text(SETTINGS.format(directory=self.directory, **values))
        # Snakemake's executor hides SLURM_CONF from the srun that it calls in a job.
        srun = f'#!/bin/sh\nSLURM_CONF={self.directory}/slurm.conf exec {shutil.which("srun")} "$@"\n'
        (self.directory / "srun").write_text(srun)
        (self.directory / "srun").chmod(0o755)
        (self.directory / "munge.key").write_bytes(os.urandom(128))
        (self.directory / "munge.key").chmod(0o600)
        files = {"key": "key-file", "seed": "seed-file", "pid": "pid-file", "socket": "socket"}
        named = [f"--{option}={self.directory}/munge.{name}" for name, option in files.items()]
        try:
            self._start("munged", "--foreground", "--force", *named)
            wait_for(lambda: (self.directory / "munge.socket").exists(), "munged")
            self._start("slurmctld", "-D", "-c")
            self._start("slurmd", "-D")
            wait_for(lambda: self.state() in ("idle", "mixed", "allocated"), "the node to be up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(subprocess.SubprocessError):
            self.ask("scancel", "--me", "--full", "--signal=KILL")
        for daemon in reversed(self._daemons.values()):
            daemon.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
            daemon.kill()

    def _start(self, name: str, *options: str) -> None:
        with open(self.directory / f"{name}.out", "ab") as log:
            program = shutil.which(name, path=SEARCHED) or name
            self._daemons[name] = subprocess.Popen([program, *options], stdout=log, stderr=log, env=self.environment)

    def ask(self, *words: str) -> str:
        """What one of SLURM's own commands answers, empty while the controller does not."""
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60).stdout

    def jobs(self) -> dict[str, str]:
        """By id: the state of each job."""
        lines = self.ask("squeue", "--noheader", "--states=all", "--Format=JobID,State").splitlines()
        return dict(line.split() for line in lines)

    def state(self) -> str:
        """The node's state, such as ``idle``."""
        return self.ask("sinfo", "--noheader", "--format=%T").strip()


def missing() -> list[str]:
    """The programs that are not installed."""
    return [name for name in PROGRAMS if not shutil.which(name, path=SEARCHED)]


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
