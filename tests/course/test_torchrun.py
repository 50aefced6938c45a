"""The same scripts under PyTorch's own starter."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from rank_scripts import gone, hanging, interrupt_when_begun, pids_in, script

from gradlab.course.processes import launch, prepare, torchrun

pytestmark = pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")


def test_the_same_file_under_torchrun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what each listens on: the ranks this machine alone, the starter every address, as notebook 11 says."""
    (temporary := tmp_path / "temporary").mkdir()
    prepare()  # multiprocessing keeps a folder as long as this Python runs
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path = script(
        tmp_path,
        """
        import psutil
        def listening(process):
            found = psutil.Process(process).net_connections(kind="inet")
            return sorted({part.laddr.ip for part in found if part.status == "LISTEN"})
        torch.manual_seed(rank)
        numbers = torch.randn(100)
        dist.all_reduce(numbers)
        if rank == 0:
            print(numbers.double().sum().item())
            print("mine:", listening(os.getpid()), "starter:", listening(os.getppid()))
        dist.destroy_process_group()  # or an interpreter now and then aborts at its end
        """,
    )
    ours, theirs = launch(path), torchrun(path)
    assert theirs, theirs
    assert ours.lines(0)[0] == theirs.lines(0)[0]
    assert theirs.lines(0)[1] in [f"mine: ['127.0.0.1'] starter: ['{address}']" for address in ("::", "0.0.0.0")]
    assert list(temporary.iterdir()) == []


def test_torchrun_that_is_late(tmp_path: Path) -> None:
    run = torchrun(hanging(tmp_path), seconds=0.5)
    assert run.error == "torchrun was not done after 0.5 seconds, and was ended."
    assert gone(pids_in(tmp_path))


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    path = hanging(tmp_path)
    interrupt_when_begun(lambda: torchrun(path, seconds=200), tmp_path)


NO_PORT = "code: -98, name: EADDRINUSE"
AT_THE_END = "terminate called without an active exception"  # C++, when a thread of gloo needs Python then


@pytest.mark.slow
@pytest.mark.parametrize(
    ("does", "error", "tries"),
    [
        (f"if rank == 0 and tries == 'x': raise KeyError('{NO_PORT}')", "", "xx"),
        (f"if rank == 0: os.write(2, b'{AT_THE_END}'); os.abort()", "rank 0 was killed: SIGABRT", "xx"),
        # Not the rank that torchrun then ends by a signal, which it writes first.
        ("if rank == 1: os._exit(3)\ntime.sleep(3600)", "rank 1 left with exit code 3", "x"),
        ("raise KeyError('no such image')", "KeyError: 'no such image'", "x"),
    ],
    ids=["a port that another program has taken", "an abort while Python is ending", "an exit", "an error"],
)
def test_what_will_have_passed_is_run_once_more_and_any_other_end_is_told(
    tmp_path: Path, does: str, error: str, tries: str
) -> None:
    text = (
        "import os, time\nfrom pathlib import Path\nrank = int(os.environ['RANK'])\nlog = Path(f'tries-{rank}')\n"
        "tries = log.read_text() + 'x' if log.exists() else 'x'\nlog.write_text(tries)\n"
    )
    run = torchrun(script(tmp_path, text + does, meet=False))
    assert run.error == (error and f"torchrun ended with an error: {error}")
    assert max(log.read_text() for log in tmp_path.glob("tries-*")) == tries  # torchrun may end one before it begins
