"""torchrun under the doctor: which starts which, and where the ranks' reports meet."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..._process import running_module
from .children import WatchLimits
from .entry_point import NotRunnableError

LAUNCHER = "torch.distributed.run"
"""The module that torchrun is."""
_FOR_OTHERS, _AT_THE_END = 60.0, 5.0  # seconds that rank 0 waits, when it has ended, for the reports of the others


def is_launcher(name: str, *, module: bool) -> bool:
    """Is this torchrun? Raises NotRunnableError for its predecessor, whose workers cannot be run as modules."""
    if module and name == "torch.distributed.launch":
        raise NotRunnableError("-m torch.distributed.launch is out of date; run: gradlab doctor torchrun ...")
    return name == LAUNCHER if module else Path(name).name == "torchrun"


def watched_arguments(arguments: Sequence[str], limits: WatchLimits) -> list[str]:
    """Return the arguments of torchrun with which each rank runs under the doctor.

    Raises NotRunnableError for arguments that torchrun does not take, or that leave no room for the doctor.
    """
    from torch.distributed.run import get_args_parser

    parser = get_args_parser()
    parser.prog, parser.usage = "torchrun", "gradlab doctor torchrun [options of torchrun] train.py ..."
    try:
        given = parser.parse_args([*arguments])
    except SystemExit as error:  # torchrun has said what is wrong
        raise NotRunnableError("torchrun does not take these arguments") from error
    if given.no_python or given.run_path:
        raise NotRunnableError("torchrun with --no-python or --run-path cannot be watched; leave that option out")
    own = [*arguments][: len(arguments) - len(given.training_script_args) - 1]
    doctor = ["-m", "gradlab", "doctor", "--report-to", str(limits.folder)]
    for option, limit in (("--updates", limits.updates), ("--seconds", limits.seconds)):
        doctor += [option, str(limit)] if limit is not None else []
    program = [*(["-m"] if given.module else []), given.training_script, *given.training_script_args]
    # Without a place for logs torchrun leaves a folder among the temporary files, even if nothing is to be logged.
    logged = given.log_dir or {given.redirects, given.tee} != {"0"}
    logs = [] if logged else ["--log-dir", str(limits.folder / "logs")]
    return [*logs, *own, *doctor, *program]


def run_torchrun(arguments: Sequence[str]) -> int:
    """Run it and return its exit code; when this process ends, it ends, too, and is waited for if possible."""
    with running_module(LAUNCHER, arguments) as running:
        return running.wait()


@dataclass
class LocalRanks:
    """The ranks on this machine, where torchrun runs the doctor: they meet in a folder, and the first reports."""

    rank: str
    """Of this process, among those of all machines."""
    first: bool
    number: int
    folder: Path

    def wait(self, *, patient: bool) -> None:
        """Wait until all others have reported, not for long if they are to be ended from outside."""
        end = time.monotonic() + (_FOR_OTHERS if patient else _AT_THE_END)
        while len([*self.folder.glob("rank-*.json")]) < self.number - 1 and time.monotonic() < end:
            time.sleep(0.05)


def local_ranks() -> LocalRanks | None:
    """Return which rank this process is of those that torchrun has started; None if it is alone."""
    number = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    if "TORCHELASTIC_RUN_ID" not in os.environ or number < 2:
        return None
    owner = os.getuid() if hasattr(os, "getuid") else 0
    run = f"{os.environ.get('MASTER_PORT', '')}-{os.environ.get('TORCHELASTIC_RESTART_COUNT', '')}"
    # All ranks have the same parent, the agent of torchrun.
    folder = Path(tempfile.gettempdir()) / f"gradlab-doctor-{owner}-{os.getppid()}-{run}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != owner:  # Windows says 0 of every file
        raise NotRunnableError(f"{folder} belongs to another user")
    return LocalRanks(os.environ.get("RANK", "0"), os.environ["LOCAL_RANK"] == "0", number, folder)
