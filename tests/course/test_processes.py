"""Several processes from a notebook: they meet, are counted, fail in every way, and none is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil
import pytest
from rank_scripts import gone, hanging, interrupt_when_begun, script

import gradlab
from gradlab.course.processes import launch, prepare, workers

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")]
ROOT = Path(gradlab.__file__).parents[1]
STDERR = "    its last output on stderr: "
# Not in the first turn: the other may still be about to meet, and would fail there.
TURNS = "for turn in range(5):\n    if rank == 1 and turn == 3:\n        {}\n    dist.all_reduce(torch.ones(1))\n"


def test_each_process_knows_its_place_and_prints_for_itself(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import atexit
        one = torch.ones(2) * (rank + 1)
        dist.all_reduce(one)
        names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR".split()
        print(*(os.environ[name] for name in names), one.tolist(), torch.get_num_threads(), __name__, sys.argv)
        print(os.getcwd(), os.environ["MORE"], file=sys.stderr if rank else sys.stdout)
        atexit.register(print, "the end")
        """,
    )
    run = launch(path, processes=3, settings={"MORE": "words"})
    assert run, run
    assert [text.splitlines()[0] for text in run.printed] == [
        f"{rank} {rank} 3 3 127.0.0.1 [6.0, 6.0] 1 __main__ ['{path}']" for rank in range(3)
    ]
    assert run.lines(0)[1:] == [f"{tmp_path} words", "the end"]
    assert run.lines(1)[1:] == ["the end"], "stderr is kept apart"
    assert repr(run).splitlines()[3].startswith("rank 1 | 1 1 3")
    assert len(set(run.pids)) == 3
    assert gone(list(run.pids))


@pytest.mark.parametrize(
    ("does", "message"),
    [
        ('raise ValueError("a broken batch")', "rank 1 failed: ValueError: a broken batch"),
        ("os.kill(os.getpid(), 9)", "rank 1 was killed: SIGKILL, as the system does when memory runs out"),
        ("sys.exit(3)", "rank 1 exited with code 3"),
        ("os._exit(4)", "rank 1 exited with code 4"),
    ],
)
def test_a_failure_is_told_from_one_that_lost_its_partner(tmp_path: Path, does: str, message: str) -> None:
    run = launch(script(tmp_path, TURNS.format(does)), seconds=20)
    lines = run.error.splitlines()
    assert not run
    assert lines[0] == message
    if not does.startswith("os."):
        assert lines[1] == f"    at line 8 of script.py: {does}"
    assert lines[-3:] == [
        "rank 0 lost its partner: RuntimeError",
        "    at line 9 of script.py: dist.all_reduce(torch.ones(1))",
        "No process is left.",
    ]
    assert gone(list(run.pids))


def test_one_that_hangs_is_ended_and_both_say_where_they_stood(tmp_path: Path) -> None:
    run = launch(script(tmp_path, TURNS.format("while True: pass")), seconds=1.0)
    assert run.error.splitlines() == [
        "Not done after 1 second: the processes that were still running have been ended.",
        "rank 0 had not finished",
        "    at line 9 of script.py: dist.all_reduce(torch.ones(1))",
        "rank 1 had not finished",
        "    at line 8 of script.py: while True: pass",
        "No process is left.",
    ]
    assert gone(list(run.pids))


def test_a_cleanup_that_hangs_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script came to its end, with its threads; what torch does after that hangs now and then."""
    monkeypatch.setattr(workers, "GRACE_SECONDS", 0.3)
    hangs = """
        import atexit, os, threading, time
        threading.Timer(0.2, lambda: print("a thread, to its end")).start()
        if os.environ["RANK"] == "1": atexit.register(time.sleep, 3600)
        """
    run = launch(script(tmp_path, hangs, meet=False), seconds=20.0)
    assert not run.error
    assert run.printed == ("a thread, to its end\n",) * 2
    assert gone(list(run.pids))


def test_what_the_processes_leave_behind_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary files and programs that they have started, also those of a rank that never notices the failure."""
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    prepare()  # multiprocessing keeps a folder as long as this Python runs
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path = script(
        work,
        """
        import subprocess, tempfile
        print(tempfile.mkdtemp())
        print(subprocess.Popen(["sleep", "3600"]).pid)
        sys.stdout.flush()
        dist.all_reduce(torch.ones(1))
        if rank == 1: os.kill(os.getpid(), 9)
        time.sleep(3600)
        """,
    )
    monkeypatch.setattr(workers, "GRACE_SECONDS", 0.3)
    run = launch(path)
    assert run.error.startswith("rank 1 was killed")
    assert "rank 0 had not finished" in run.error
    assert all(text.startswith(f"{temporary}{os.sep}gradlab-") for text in run.printed)
    assert gone([int(text.splitlines()[1]) for text in run.printed])
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("does", "lines"),
    [
        (
            "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\nprint('no room')",
            ["rank 0 failed: OSError: [Errno 27] File too large", "    at line 3 of script.py: print('no room')"],
        ),
        (
            "os.write(2, b'terminate called without\\nan active exception\\n')\nos.abort()",
            ["rank 0 was killed: SIGABRT", f"{STDERR}terminate called without an active exception"],
        ),
    ],
    ids=["a full disk", "an abort of C++"],
)
def test_the_reason_of_an_end_is_told(tmp_path: Path, does: str, lines: list[str]) -> None:
    """A limit of 0 bytes for every file is like a full disk, which ours is not to be."""
    run = launch(script(tmp_path, f"import os, resource\n{does}", meet=False), processes=1)
    assert run.error.splitlines() == [*lines, "No process is left."]


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    path = hanging(tmp_path)
    interrupt_when_begun(lambda: launch(path, seconds=200), tmp_path)


def test_nothing_listens_but_on_this_machines_own_address(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import json, psutil
        dist.all_reduce(torch.ones(1))
        both = [psutil.Process(), psutil.Process(int(os.environ["STARTER"]))]
        found = [part for process in both for part in process.net_connections(kind="inet")]
        print(json.dumps([[part.laddr.ip, part.laddr.port] for part in found if part.status == "LISTEN"]))
        print(os.environ["MASTER_PORT"])
        """,
    )
    before = {part.laddr.port for part in psutil.Process().net_connections(kind="inet") if part.status == "LISTEN"}
    run = launch(path, settings={"STARTER": str(os.getpid())})
    assert run, run
    for rank in (0, 1):
        listening, port = map(json.loads, run.lines(rank))
        assert ["127.0.0.1", port] in listening
        assert {address for address, number in listening if number not in before} == {"127.0.0.1"}
    after = {part.laddr.port for part in psutil.Process().net_connections(kind="inet") if part.status == "LISTEN"}
    assert after <= before  # and the meeting point is closed


def test_without_a_network_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise OSError("Network is unreachable")

    monkeypatch.setattr("socket.create_connection", refuse)
    run = launch(script(tmp_path, "print('met')"))
    assert run.error.startswith("The processes could not meet.")
    assert "Network is unreachable" in run.error
    assert run.pids == ()
    assert run.lines(0) == run.error.splitlines()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("nowhere.py",), FileNotFoundError, "there is no file 'nowhere.py' here"),
        ((__file__, 0), ValueError, "processes must be a whole number from 1 to 8, got 0"),
        ((__file__, True), ValueError, "got True"),
    ],
)
def test_what_cannot_be_started_is_refused(arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        launch(*arguments)


@pytest.mark.slow
@pytest.mark.nightly
def test_a_program_needs_no_guard_to_launch(tmp_path: Path) -> None:
    """As on macOS, where nothing is copied: its ranks do not import it, or each would launch two more."""
    path = script(tmp_path, "import os\nprint(os.environ['RANK'])", meet=False)
    program = tmp_path / "program.py"
    program.write_text(
        "from gradlab.course.processes import launch, work_in_temporary_folder, workers\n"
        "open('runs', 'a').write('x')\nwork_in_temporary_folder()\n"
        f"workers.START_METHOD = 'spawn'\nprint(launch({str(path)!r}).printed)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("('0\\n', '1\\n')\n", "")
    assert (tmp_path / "runs").read_text() == "x"


def test_a_folder_that_is_gone_at_the_end_is_no_error(tmp_path: Path) -> None:
    """As when the site records a lesson in a folder that it removes: Python ended with a traceback."""
    program = (
        "import os, tempfile\nfrom gradlab.course.processes import work_in_temporary_folder\n"
        "with tempfile.TemporaryDirectory() as folder:\n    os.chdir(folder)\n    work_in_temporary_folder()\n"
        f"    os.chdir({str(tmp_path)!r})\n"
    )
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.nightly
def test_the_same_file_under_torchrun(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        torch.manual_seed(rank)
        numbers = torch.randn(100)
        dist.all_reduce(numbers)
        if rank == 0: print(numbers.double().sum().item())
        dist.destroy_process_group()  # or an interpreter now and then aborts at its end
        """,
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", path.name]
    (temporary := tmp_path / "temporary").mkdir()  # torchrun leaves a folder at every start
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(temporary)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == launch(path).lines(0), done.stderr
