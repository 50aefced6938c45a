"""Training in threads, processes and ranks of torchrun; and a watch that ends before the program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch
from test_doctor_script import CLEAN, FINDINGS, FORGETFUL, FORGETS, doctor
from torch.distributed.run import get_args_parser

import gradlab
from gradlab.doctor import watch
from gradlab.doctor.script import NotRunnableError, watched_arguments

LOOP = """
import torch

def train(rank=0, forget=True):
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        if not forget:
            optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()  # line 12
"""
MAIN = '\nif __name__ == "__main__":\n'


def train(updates: int = 6, *, forget: bool = True, on_update=lambda number: None) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(updates):
        on_update(number)
        if not forget:
            optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()


def in_thread(target, *args) -> None:
    thread = threading.Thread(target=target, args=args, name="trainer")
    thread.start()
    thread.join()


def patched() -> list[object]:
    """Everything of PyTorch and Python that a watch replaces, and the hooks that it registers."""
    from torch.nn.modules import module
    from torch.optim import optimizer

    functions = [
        torch.autograd._engine_run_backward,
        torch.nn.Module.__call__,
        torch.nn.Module.train,
        torch.nn.Module.zero_grad,
        torch.optim.Optimizer.__init__,
        torch.optim.Optimizer.zero_grad,
        torch.amp.GradScaler.step,
        torch.optim.lr_scheduler.StepLR.step,
        BaseProcess.start,
    ]
    hooks = [
        optimizer._global_optimizer_pre_hooks,
        optimizer._global_optimizer_post_hooks,
        module._global_parameter_registration_hooks,
    ]
    return [*functions, *map(len, hooks)]


# Threads.


def test_a_thread_that_trains_alone_is_followed() -> None:
    with watch() as report:
        in_thread(train)
    assert report.codes == [FORGETS]
    assert report.judged
    assert "thread trainer" in report.watched
    assert "6 updates" in report.watched
    with watch() as report:
        in_thread(lambda: train(forget=False))
    assert (report.findings, report.judged) == ([], True)


def test_threads_that_take_turns_are_followed() -> None:
    with watch() as report:
        in_thread(train, 3)
        in_thread(train, 4)
        train(5)
    assert "12 backward passes" in report.watched
    assert report.judged


def test_threads_that_train_side_by_side_are_not_judged() -> None:
    meet = threading.Barrier(2, timeout=30)
    with watch() as report, ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: train(on_update=lambda number: number == 5 and meet.wait()), range(2)))
    assert not report.findings
    assert not report.judged
    assert "2 threads trained" in report.text
    assert "No findings" not in report.text


def test_the_own_thread_comes_first_and_others_are_told() -> None:
    with watch() as report:
        train(5)
        in_thread(train)
    assert report.codes == [FORGETS]
    assert not report.judged
    assert "Watched 5 backward passes" in report.watched
    assert "trainer" in report.watched


def test_a_thread_that_only_looks_on_changes_nothing() -> None:
    model = torch.nn.Linear(2, 1)
    with watch() as report:
        in_thread(lambda: model(torch.ones(1, 2)).detach())
        train(forget=False)
    assert (report.codes, report.judged) == ([], True)
    assert "6 backward passes" in report.watched


# A watch that ends early.


def test_after_some_updates_nothing_is_patched() -> None:
    before, states = patched(), []

    def record(number: int) -> None:
        states.append((patched() == before, report.codes))

    with watch(updates=3) as report:
        train(6, on_update=record)
    # It ends when the fourth backward pass begins, which comes after record(3).
    assert states == [(False, [])] * 4 + [(True, [FORGETS])] * 2
    assert "3 updates" in report.watched
    assert "Watched 3 backward passes" in report.watched


def test_after_some_seconds_too() -> None:
    before = patched()
    with watch(seconds=0.01) as report:
        end = time.monotonic() + 30
        while patched() != before and time.monotonic() < end:
            train(1, forget=False)
        assert report.watched


def test_a_closure_has_its_whole_update() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=3)
    calls = []

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(4, 2)).pow(2).mean()
        loss.backward()
        calls.append(report.watched)
        return loss

    with watch(updates=1) as report:
        optimizer.step(closure)
        within = len(calls)
        optimizer.step(closure)
    assert not any(calls[:within])
    assert all(calls[within:])
    assert "1 update of " in report.watched


def test_the_report_is_printed_at_once_and_only_once(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "train.py").write_text(FORGETFUL + "print('after', flush=True)")
    code, out, _ = doctor(capfd, "--updates", "3", "train.py")
    assert code == FINDINGS
    assert out.index(FORGETS) < out.index("after")
    assert out.count(FORGETS) == 1
    code, out, err = doctor(capfd, "--json", "--updates", "3", "train.py")
    assert json.loads(out)["findings"][0]["code"] == FORGETS
    assert (code, err) == (FINDINGS, "after\n")


# Processes.

FORKED = f"""{LOOP}
import multiprocessing, sys, time
fork = multiprocessing.get_context("fork")

class Trainer(fork.Process):
    def run(self):
        train(forget=False)

def wait():
    train()
    ready.release()
    time.sleep(60)
{MAIN}
    ready = fork.Semaphore(0)
    children = [fork.Process(target=wait), Trainer(), fork.Process(target=train)]
    for child in children:
        child.start()
    assert ready.acquire(timeout=60)
    children[0].terminate()
    for child in children:
        child.join()
    print([child.exitcode for child in children])
    if "itself" in sys.argv:
        train(forget=False)
"""


WATCHED = f"""{LOOP}
import multiprocessing, os
from gradlab.doctor import watch
child = multiprocessing.get_context("fork").Process(target=train)
with watch() as report:
    child.start()
    child.join()
print(child.exitcode, report.judged, report.watched, flush=True)
with watch() as report:
    if not (child := os.fork()):
        train()
        report.__exit__(None, None, None)
        train()
        os._exit(len(report.findings))
    print(os.waitpid(child, 0)[1])
"""


def python(*arguments: str) -> tuple[int, str]:
    """Run Python in a process of its own, as safe to fork as a user's; return its exit code and output."""
    environment = {**os.environ, "PYTHONPATH": str(Path(gradlab.__file__).parents[1])}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout


def test_a_watch_says_where_the_training_may_have_been(folder: Path) -> None:
    (folder / "train.py").write_text(WATCHED)
    code, out = python("train.py")
    assert (code, out[:8]) == (0, "0 False ")
    assert "may have run in the 1 process that this one started" in out
    assert out.endswith("\n0\n"), "in a forked child it goes on and has no findings"


@pytest.mark.slow
def test_the_first_process_reports_and_all_end_as_they_would(folder: Path) -> None:
    doctor = ["-m", "gradlab", "doctor"]
    (folder / "train.py").write_text(FORKED)
    code, out = python(*doctor, "--json", "--output", "report.json", "train.py")
    assert (code, out) == (FINDINGS, f"[{-signal.SIGTERM}, 0, 0]\n")
    report = json.loads((folder / "report.json").read_text())
    assert [(finding["code"], finding["line"]) for finding in report["findings"]] == [(FORGETS, 12)]
    assert report["watched"].startswith(
        "In the first process that it started: Watched 6 backward passes, 6 updates of "
    )
    assert report["watched"].endswith(" The doctor did not watch 2 other processes.")
    code, out = python(*doctor, "train.py", "itself")  # a process that trains itself is reported
    assert code == CLEAN
    assert "No findings. Watched 6 backward passes" in out
    assert "The doctor did not watch 3 other processes." in out


@pytest.mark.nightly
def test_rank_0_of_spawn_and_of_torchrun_reports(folder: Path, capfd, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(gradlab.__file__).parents[1]))  # for the ranks, which start anew
    spawn = "    import torch.multiprocessing\n    torch.multiprocessing.spawn(train, nprocs=2)\n"
    (folder / "spawn.py").write_text(LOOP + MAIN + spawn)
    (folder / "train.py").write_text(LOOP + "import os, sys\ntrain(forget=os.environ['RANK'] == '0')\nprint(sys.argv)")
    for arguments, where in (
        (["spawn.py"], "In the first process that it started"),
        (["torchrun", "--nproc-per-node=2", "train.py", "--lr", "1"], "In rank 0"),
    ):
        code, out, err = doctor(capfd, *arguments)
        assert code == FINDINGS, err
        assert out.count("1 finding. ") == 1
        assert f"{where}: Watched 6 backward passes" in out
        assert "The doctor did not watch 1 other process." in out
        assert ":12\n" in out
    assert out.count("['train.py', '--lr', '1']") == 2


@pytest.mark.nightly
def test_torchrun_may_start_the_doctor(folder: Path) -> None:
    (folder / "train.py").write_text(LOOP + "import os\ntrain(forget=os.environ['RANK'] == '0')")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "-m", "gradlab", "doctor"]
    done = subprocess.run([*torchrun, "train.py"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == FINDINGS, done.stderr
    assert done.stdout.count("1 finding. In rank 0: ") == 1


def test_another_rank_than_0_runs_as_it_is(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch) -> None:
    (folder / "train.py").write_text(FORGETFUL + "print('mine')")
    for name, value in {"TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("RANK", "1")
    assert doctor(capfd, "train.py")[:2] == (CLEAN, "mine\n")
    monkeypatch.setenv("RANK", "0")
    code, out, _ = doctor(capfd, "train.py")
    assert code == FINDINGS
    assert "In rank 0: Watched 6 backward passes" in out
    assert "The doctor did not watch 3 other processes." in out


@pytest.mark.parametrize("program", [["train.py"], ["-m", "pack.train"]])
@pytest.mark.parametrize("logs", [[], ["--log-dir", "logs"], ["--redirects", "3"]])
def test_torchrun_gets_the_doctor_instead_of_the_script(program: list[str], logs: list[str], folder: Path) -> None:
    """Check against torchrun's own parser: the program it would run, and its options."""
    options, arguments = ["--nnodes=1", "--nproc-per-node", "2", *logs], ["--lr", "1", "-m", "x"]
    report = folder / "report.json"
    changed = watched_arguments([*options, *program, *arguments], {"updates": 5, "seconds": None}, report)
    before = vars(get_args_parser().parse_args([*options, *program, *arguments]))
    after = vars(get_args_parser().parse_args(changed))
    assert (after.pop("module"), after.pop("training_script")) == (True, "gradlab")
    script_args = after.pop("training_script_args")
    assert script_args == ["doctor", "--report-to", str(report), "--updates", "5", *program, *arguments]
    if not logs:
        assert after.pop("log_dir") == str(folder / "logs")  # which goes with the report
    assert after == {name: value for name, value in before.items() if name in after}


def test_torchrun_without_a_script_is_told(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotRunnableError, match="torchrun"):
        watched_arguments(["--nproc-per-node", "2"], {}, folder / "report.json")
    assert "torchrun: error: " in capfd.readouterr().err
