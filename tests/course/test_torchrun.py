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


def test_torchrun_that_fails_and_torchrun_that_is_late(tmp_path: Path) -> None:
    run = torchrun(script(tmp_path, "raise KeyError('no such image')", meet=False))
    assert run.error == "torchrun ended with an error: KeyError: 'no such image'"
    run = torchrun(hanging(tmp_path), seconds=0.5)
    assert run.error == "torchrun was not done after 0.5 seconds, and was ended."
    assert gone(pids_in(tmp_path))


@pytest.mark.parametrize(
    ("does", "why"), [("os.abort()", "rank 1 was killed: SIGABRT"), ("os._exit(3)", "rank 1 left with exit code 3")]
)
def test_torchrun_names_the_rank_that_ended_first(tmp_path: Path, does: str, why: str) -> None:
    """Not the one that torchrun then ends by a signal, which it writes first."""
    text = f"import os, time\nif os.environ['RANK'] == '1': {does}\ntime.sleep(3600)"
    run = torchrun(script(tmp_path, text, meet=False))
    assert run.error == f"torchrun ended with an error: {why}"


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    path = hanging(tmp_path)
    interrupt_when_begun(lambda: torchrun(path, seconds=200), tmp_path)


@pytest.mark.parametrize(
    ("fails", "error"),
    [
        (
            'print("terminate called without an active exception", file=sys.stderr, flush=True)\n    os.abort()',
            "rank 0 was killed: SIGABRT",
        ),
        (
            'raise DistNetworkError("The server socket has failed to listen. code: -98, name: EADDRINUSE")',
            "DistNetworkError: The server socket has failed to listen",
        ),
    ],
    ids=["an abort while Python is ending", "a port that another program has taken"],
)
def test_what_will_have_passed_is_no_end(tmp_path: Path, fails: str, error: str) -> None:
    """It is run a second time, which finds another port; any other abort is the script's own, and an error that stays
    is told by its name. The words of the abort are what C++ writes when a thread of gloo needs Python then."""
    text = f"""
import os, sys
from pathlib import Path
from torch.distributed import DistNetworkError
tries = Path(f"tries-{{os.environ['RANK']}}")
tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
if os.environ["RANK"] == "0" and len(tries.read_text()) <= FAILS:
    {fails}
"""
    once = torchrun(script(tmp_path, text.replace("FAILS", "1"), meet=False))
    assert once, once
    assert (tmp_path / "tries-0").read_text() == "xx"
    for left in tmp_path.glob("tries-*"):
        left.unlink()
    always = torchrun(script(tmp_path, text.replace("FAILS", "9"), meet=False))
    assert always.error.startswith("torchrun ended with an error: ")
    assert error in always.error
    assert (tmp_path / "tries-0").read_text() == "xx"
