"""How launch ends, and what it says then: interrupted, out of room, without its folder, without a guard."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from rank_scripts import gone, hanging, pids_in, script

import gradlab
from gradlab.course.processes import launch, torchrun, workers

pytestmark = pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")
ROOT = Path(gradlab.__file__).parents[1]
STDERR = "    its last words on stderr: "


def test_a_second_interrupt_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def interrupt_when_started(ranks: list[workers.Worker], seconds: float) -> bool:
        while len(pids_in(tmp_path)) < 2:
            time.sleep(0.02)
        monkeypatch.setattr(workers.time, "sleep", interrupt)  # while it waits for their answers
        raise KeyboardInterrupt

    monkeypatch.setattr(sys.modules[launch.__module__], "wait_all", interrupt_when_started)
    try:
        with pytest.raises(KeyboardInterrupt):
            launch(hanging(tmp_path))
    finally:
        monkeypatch.undo()
    assert gone(pids_in(tmp_path))


@pytest.mark.parametrize(
    ("does", "lines"),
    [
        (
            "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\nprint('no room')",
            ["rank 0 failed: OSError: [Errno 27] File too large", "    at line 3 of script.py: print('no room')"],
        ),
        (
            "os.write(2, b'terminate called without\\nan active exception\\n' + b'frame #0: main\\n' * 99)\nos.abort()",
            [
                "rank 0 was killed: SIGABRT",
                "    its last words on stderr: terminate called without an active exception",
            ],
        ),
        (
            "os.write(2, b'x' * 999 + b'\\nout of registers\\n')\nos._exit(4)",
            ["rank 0 left with exit code 4", f"{STDERR}{'x' * 182} out of registers"],
        ),
    ],
    ids=["a full disk", "an abort of C++", "an exit"],
)
def test_the_reason_of_an_end_is_told(tmp_path: Path, does: str, lines: list[str]) -> None:
    """A limit of 0 bytes for every file is like a full disk, which ours is not to be."""
    run = launch(script(tmp_path, f"import os, resource\n{does}", meet=False), processes=1)
    assert [line[: len(wanted)] for line, wanted in zip(run.error.splitlines(), lines, strict=False)] == lines
    assert run.error.splitlines()[len(lines) :] == ["No process is left."]


def test_without_the_temporary_folder_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "removed"))
    for start in (launch, torchrun):
        run = start(hanging(tmp_path))
        assert run.error.splitlines() == [run.error]
        assert run.error.startswith("Processes cannot be started: what this Python keeps among the temporary files")
        assert f"{tmp_path / 'removed'}, was removed; restart the kernel." in run.error


@pytest.mark.slow
def test_without_the_socket_of_the_process_that_is_copied(tmp_path: Path) -> None:
    """In a Python of its own: nothing can be started in it afterwards."""
    program = (
        "import multiprocessing.util, shutil, sys\nfrom gradlab.course.processes import launch, prepare\nprepare()\n"
        "shutil.rmtree(multiprocessing.util.get_temp_dir())\nprint(launch(sys.argv[1]))"
    )
    command = [sys.executable, "-c", program, str(hanging(tmp_path))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout.endswith("was removed; restart the kernel.\n"), done.stderr


@pytest.mark.parametrize("method", [workers.START_METHOD, pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_program_needs_no_guard_to_launch(tmp_path: Path, method: str) -> None:
    """Its ranks do not import it; or each would launch two more."""
    path = script(tmp_path, "import os\nprint(os.environ['RANK'])", meet=False)
    program = tmp_path / "program.py"
    program.write_text(
        "from gradlab.course.processes import launch, workers\nopen('runs', 'a').write('x')\n"
        f"workers.START_METHOD = {method!r}\nprint(launch({str(path)!r}).printed)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("('0\\n', '1\\n')\n", "")
    assert (tmp_path / "runs").read_text() == "x"


def test_at_the_end_the_folder_of_before_may_be_gone(tmp_path: Path) -> None:
    (before := tmp_path / "before").mkdir()
    program = (
        "import os\nfrom gradlab.course.processes import work_in_temporary_folder\n"
        "before = os.getcwd()\nwork_in_temporary_folder()\nprint(os.getcwd())\nos.rmdir(before)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=before, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert not Path(done.stdout.strip()).exists()
