"""Several processes from a notebook: they meet, are counted, fail in every way, and none is left behind."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import psutil
import pytest
from rank_scripts import gone, hanging, interrupt_when_begun, script

from gradlab.course.processes import launch, prepare, torchrun, workers
from gradlab.course.processes.report import RankError, RankExit, describe_failure

pytestmark = pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")
# Not in the first turn: the other may still be about to meet, and would fail there.
TURNS = "for turn in range(5):\n    if rank == 1 and turn == 3:\n        {}\n    dist.all_reduce(torch.ones(1))\n"


def test_each_process_knows_its_place_and_prints_for_itself(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        one = torch.ones(2) * (rank + 1)
        dist.all_reduce(one)
        names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR".split()
        print(*(os.environ[name] for name in names), one.tolist(), torch.get_num_threads(), __name__, sys.argv)
        print(os.getcwd(), os.environ["MORE"], file=sys.stderr if rank else sys.stdout)
        """,
    )
    run = launch(path, processes=3, settings={"MORE": "words"})
    assert run
    assert run.ok
    assert [text.splitlines()[0] for text in run.printed] == [
        f"{rank} {rank} 3 3 127.0.0.1 [6.0, 6.0] 1 __main__ ['{path}']" for rank in range(3)
    ]
    assert run.lines(0)[1] == f"{tmp_path} words"
    assert len(run.lines(1)) == 1  # stderr is kept apart
    assert repr(run).splitlines()[2].startswith("rank 1 | 1 1 3")
    assert len(set(run.pids)) == 3
    assert run.still_running == []
    assert gone(list(run.pids))


def test_one_process_alone_runs_what_is_registered_for_the_end(tmp_path: Path) -> None:
    run = launch(script(tmp_path, "import atexit\natexit.register(print, 'the end')", meet=False), processes=1)
    assert repr(run) == "the end"


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ('raise ValueError("a broken batch")', "rank 1 failed: ValueError: a broken batch"),
        ("os.kill(os.getpid(), 9)", "rank 1 was killed: SIGKILL, as the system does when memory runs out"),
        ("sys.exit(3)", "rank 1 left with exit code 3"),
        ("os._exit(4)", "rank 1 left with exit code 4"),
    ],
)
def test_one_that_fails_is_named_and_the_other_only_lost_its_partner(tmp_path: Path, does: str, words: str) -> None:
    path = script(tmp_path, TURNS.format(does))
    run = launch(path, seconds=20)
    lines = run.error.splitlines()
    assert not run
    assert lines[0] == words
    if not does.startswith("os."):
        assert lines[1] == f"    at line 8 of script.py: {does}"
    assert lines[-3:] == [
        "rank 0 lost its partner: RuntimeError",
        "    at line 9 of script.py: dist.all_reduce(torch.ones(1))",
        "No process is left.",
    ]
    assert gone(list(run.pids))


def test_what_the_processes_leave_among_the_temporary_files_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    prepare()  # multiprocessing keeps a folder as long as this Python runs
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path = script(
        work,
        """
        import tempfile
        print(tempfile.mkdtemp())
        sys.stdout.flush()
        dist.all_reduce(torch.ones(1))
        if rank == 1: os.kill(os.getpid(), 9)
        time.sleep(3600)
        """,
    )
    monkeypatch.setattr(workers, "GRACE", 0.5)
    run = launch(path)
    assert run.error.startswith("rank 1 was killed")
    assert "rank 0 had not finished" in run.error  # it would never notice
    assert all(text.startswith(f"{temporary}{os.sep}gradlab-") for text in run.printed)
    assert list(temporary.iterdir()) == []


def test_one_that_hangs_is_ended_and_both_say_where_they_stood(tmp_path: Path) -> None:
    path = script(tmp_path, TURNS.format("while True: pass"))
    run = launch(path, seconds=1.5)
    assert run.error.splitlines() == [
        "Not done after 1.5 seconds: what was still running has been ended.",
        "rank 0 had not finished",
        "    at line 9 of script.py: dist.all_reduce(torch.ones(1))",
        "rank 1 had not finished",
        "    at line 8 of script.py: while True: pass",
        "No process is left.",
    ]
    assert gone(list(run.pids))


def test_what_a_process_starts_ends_with_it(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        """
        import subprocess
        child = subprocess.Popen(["sleep", "3600"])
        open(f"child{os.environ['RANK']}", "w").write(str(child.pid))
        """,
        meet=False,
    )
    path.write_text("import os\n" + path.read_text())
    assert launch(path)
    assert gone([int((tmp_path / f"child{rank}").read_text()) for rank in (0, 1)])


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    path = hanging(tmp_path)
    interrupt_when_begun(lambda: launch(path), tmp_path)


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
        new = [(address, number) for address, number in listening if number not in before]
        assert ["127.0.0.1", port] in listening
        assert {address for address, _ in new} == {"127.0.0.1"}
    after = {part.laddr.port for part in psutil.Process().net_connections(kind="inet") if part.status == "LISTEN"}
    assert after <= before  # and the meeting point is closed


def test_where_they_cannot_meet_it_says_so_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = script(tmp_path, "print('met')")
    run = launch(path, settings={"GLOO_SOCKET_IFNAME": "nowhere0"}, seconds=10)
    assert not run
    assert run.error.startswith("The processes could not meet.")
    assert "Unable to find address for: nowhere0" in run.error
    assert "Traceback" not in repr(run)

    def refuse(*arguments: object, **options: object) -> None:
        raise OSError("Network is unreachable")

    monkeypatch.setattr("socket.create_connection", refuse)
    run = launch(path)
    assert run.error.startswith("The processes could not meet.")
    assert run.pids == ()
    assert run.lines(0) == run.error.splitlines()


@pytest.mark.slow
def test_where_nothing_is_copied_each_process_loads_torch_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "START_METHOD", "spawn")  # as on macOS
    run = launch(script(tmp_path, "print(rank, size)"), seconds=60)
    assert run.printed == ("0 2\n", "1 2\n")


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("nowhere.py",), FileNotFoundError, "there is no file 'nowhere.py' here"),
        ((3,), TypeError, "script must be the name of a file, got 3"),
        ((__file__, 0), ValueError, "processes must be a whole number from 1 to 8, got 0"),
        ((__file__, True), ValueError, "got True"),
        ((__file__, 2, 0), ValueError, "seconds must be a number between 0 and 3600, got 0"),
        ((__file__, 2, "long"), ValueError, "got 'long'"),
    ],
)
def test_what_cannot_be_started_is_refused(arguments: tuple, error: type[Exception], words: str) -> None:
    for start in (launch, torchrun):
        with pytest.raises(error, match=words):
            start(*arguments)


def test_the_cause_comes_first_whatever_the_number() -> None:
    lost = RankError("RuntimeError", "Connection closed by peer", None, 2.0, False)
    first = RankError("IndexError", "7", None, 1.0, False)
    ranks = [RankExit(1, lost, False), RankExit(0, None, False), RankExit(1, first, False), RankExit(-9, None, True)]
    assert describe_failure(ranks, Path("x.py"), None).splitlines() == [
        "rank 2 failed: IndexError: 7",
        "rank 0 lost its partner: RuntimeError",
        "rank 3 had not finished",
        "No process is left.",
    ]
    assert describe_failure([RankExit(0, None, False)], Path("x.py"), None) == ""


def test_a_pytorch_for_windows_without_gloo_is_told_as_that() -> None:
    """What init_process_group raises there, in the words of pytorch's issue 150381."""
    error = RankError("RuntimeError", "makeDeviceForHostname(): unsupported gloo device", 4, 1.0, True)
    words = describe_failure([RankExit(1, error, False), RankExit(1, error, False)], Path("x.py"), None)
    assert words.startswith("The processes could not meet: gloo in this version of PyTorch does not work on Windows")
