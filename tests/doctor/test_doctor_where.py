"""Where the training really runs: threads, processes, ranks of torchrun; and a watch that ends before the program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from test_doctor_script import CLEAN, FINDINGS, FORGETFUL, FORGETS, HEALTHY, NOT_RUN, doctor
from torch.distributed.run import get_args_parser
from torch.nn.parallel import DistributedDataParallel

from gradlab.doctor import Report, watch
from gradlab.doctor.listeners.child_processes import command_for_doctor
from gradlab.doctor.programs.children import (
    ChildReport,
    WatchLimits,
    expect_report,
    merge_reports,
    read_reports,
    write_report,
)
from gradlab.doctor.programs.entry_point import NotRunnableError
from gradlab.doctor.programs.script import ProgramWatch
from gradlab.doctor.programs.torchrun import watched_arguments
from gradlab.doctor.watching import RankGradients

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
        DistributedDataParallel.__init__,
        subprocess.Popen.__init__,
        __import__("multiprocessing.process").process.BaseProcess.start,
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


def test_after_some_updates_nothing_is_patched_and_the_program_goes_on() -> None:
    before, seen = patched(), []

    def look(number: int) -> None:
        seen.append((patched() == before, report.codes))

    with watch(updates=3) as report:
        train(6, on_update=look)
    # It ends when the fourth backward pass begins, which comes after look(3).
    assert seen == [(False, [])] * 4 + [(True, [FORGETS])] * 2
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


def test_a_watch_says_where_the_training_may_have_been(folder: Path) -> None:
    (folder / "empty.py").write_text("")
    with watch() as report:
        subprocess.run([sys.executable, "-u", "empty.py", "--lr", "1"], check=True)
    assert not report.judged
    assert report.watched.startswith("Nothing was trained")
    assert report.text.endswith("gradlab doctor empty.py --lr 1")
    import multiprocessing

    with watch() as report:
        child = multiprocessing.get_context("fork").Process(target=int, name="helper")
        child.start()
        child.join()
    assert "helper" in report.watched
    assert not report.judged


@pytest.mark.parametrize(
    ("way", "told"),
    [
        ("subprocess.run([sys.executable, 'single.py', 'a b'])", "gradlab doctor single.py 'a b'"),
        ("os.system(f\"{sys.executable} single.py 'a b'\")", "Nothing was trained in this process"),
    ],
)
def test_a_program_that_starts_another_is_not_called_clean(way: str, told: str, folder: Path, capfd) -> None:
    (folder / "single.py").write_text("")
    (folder / "train.py").write_text(f"import os, subprocess, sys\n{way}")
    code, out, _ = doctor(capfd, "train.py")
    assert code == NOT_RUN
    assert told in out
    assert "No findings" not in out


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ([sys.executable, "train.py"], "gradlab doctor train.py"),
        (["/usr/bin/python3.12", "-X", "dev", "-W", "ignore", "-u", "t.py", "-u"], "gradlab doctor t.py -u"),
        (["python", "-m", "pack.train", "--lr", "1"], "gradlab doctor -m pack.train --lr 1"),
        (["torchrun", "--nproc-per-node", "2", "t.py"], "gradlab doctor torchrun --nproc-per-node 2 t.py"),
        (["python", "-c", "print(1)"], ""),
        (["python", "-m", "pip", "list"], ""),
        (["python"], ""),
        (["ls", "train.py"], ""),
    ],
)
def test_the_command_that_puts_a_program_under_the_doctor(command: list[str], expected: str) -> None:
    assert command_for_doctor(command) == expected


FORKED = f"""{LOOP}
import multiprocessing
fork = multiprocessing.get_context("fork")

class Trainer(fork.Process):
    def run(self):
        train(forget=False)

def wait():
    train()
    import time
    ready.release()
    time.sleep(60)
{MAIN}
    ready = fork.Semaphore(0)
    children = [fork.Process(target=train, name="one"), Trainer(name="two"), fork.Process(target=wait, name="three")]
    for child in children:
        child.start()
    ready.acquire()
    children[2].terminate()
    for child in children:
        child.join()
    print([child.exitcode for child in children])
"""


def test_processes_are_followed_and_end_as_they_would(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "train.py").write_text(FORKED)
    code, out, _ = doctor(capfd, "--json", "--output", "report.json", "train.py")
    assert code == FINDINGS
    assert out == f"[0, 0, {-signal.SIGTERM}]\n"
    report = json.loads((folder / "report.json").read_text())
    (finding,) = report["findings"]
    assert (finding["code"], finding["line"]) == (FORGETS, 12)
    assert "only in one and three of 3 processes" in finding["evidence"]
    assert "6 updates of " in report["watched"]


def test_processes_run_also_where_no_report_can_be_written(folder: Path) -> None:
    import multiprocessing

    child = multiprocessing.get_context("fork").Process(target=train)
    with ProgramWatch(WatchLimits(folder / "not there")) as report:
        child.start()
        child.join()
    assert child.exitcode == 0
    assert not report.judged


@pytest.mark.slow
def test_ranks_of_spawn_give_one_report(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    spawn = "    import torch.multiprocessing\n    torch.multiprocessing.spawn(train, nprocs=2)\n"
    (folder / "train.py").write_text(LOOP + MAIN + spawn)
    code, out, err = doctor(capfd, "train.py")
    assert code == FINDINGS, err
    assert out.count("1 finding.") == 1
    assert "ranks 0 and 1: Watched 6 backward passes" in out
    assert f"{FORGETS}  at train.py:12" in out


@pytest.mark.slow
def test_ranks_of_torchrun_give_one_report(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "train.py").write_text(LOOP + "import os, sys\ntrain(forget=os.environ['RANK'] == '1')\nprint(sys.argv)")
    code, out, _ = doctor(capfd, "torchrun", "--nproc-per-node=2", "train.py", "--lr", "1")
    assert code == FINDINGS
    assert out.count("['train.py', '--lr', '1']") == 2
    assert "ranks 0 and 1: Watched 6 backward passes" in out
    assert "only in rank 1 of 2 processes" in out


@pytest.mark.nightly
def test_torchrun_may_start_the_doctor(folder: Path) -> None:
    (folder / "train.py").write_text(LOOP + "import os\ntrain(forget=os.environ['RANK'] == '0')")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "-m", "gradlab", "doctor"]
    done = subprocess.run([*torchrun, "train.py"], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == FINDINGS, done.stderr
    assert done.stdout.count("1 finding.") == 1
    assert "only in rank 0 of 2 processes" in done.stdout


def test_ranks_meet_in_a_folder(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch) -> None:
    (folder / "train.py").write_text(FORGETFUL)
    (folder / "clean.py").write_text(HEALTHY)
    environment = {"TORCHELASTIC_RUN_ID": "x", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": str(os.getpid())}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for rank in ("1", "0"):
        monkeypatch.setenv("RANK", rank)
        monkeypatch.setenv("LOCAL_RANK", rank)
        code, out, _ = doctor(capfd, "train.py" if rank == "1" else "clean.py")
        if rank == "1":
            assert (code, out) == (CLEAN, "")  # its exit code is the program's own, and rank 0 prints
    assert code == FINDINGS
    assert "only in rank 1 of 2 processes" in out


@pytest.mark.parametrize("module", [False, True])
def test_torchrun_gets_the_doctor_in_the_place_of_the_script(module: bool, folder: Path) -> None:
    """torchrun's own parser says what it would run, and with which options."""
    program = ["-m", "pack.train"] if module else ["train.py"]
    options, arguments = ["--nnodes=1", "--nproc-per-node", "2", "--standalone"], ["--lr", "1", "-m", "x"]
    made = watched_arguments([*options, *program, *arguments], WatchLimits(folder, updates=5))
    before = vars(get_args_parser().parse_args([*options, *program, *arguments]))
    after = vars(get_args_parser().parse_args(made))
    assert (after.pop("module"), after.pop("training_script")) == (True, "gradlab")
    assert after.pop("log_dir") == str(folder / "logs")  # which goes with the reports
    given = after.pop("training_script_args")
    assert given == ["doctor", "--report-to", str(folder), "--updates", "5", *program, *arguments]
    assert after == {name: value for name, value in before.items() if name in after}


@pytest.mark.parametrize("option", [["--log-dir", "logs"], ["--redirects", "3"], ["--tee", "1"]])
def test_torchrun_keeps_the_logs_that_are_asked_for(option: list[str], folder: Path) -> None:
    before = vars(get_args_parser().parse_args([*option, "train.py"]))
    after = vars(get_args_parser().parse_args(watched_arguments([*option, "train.py"], WatchLimits(folder))))
    assert [before[name] for name in ("log_dir", "redirects", "tee")] == [
        after[name] for name in ("log_dir", "redirects", "tee")
    ]


def test_torchrun_without_a_script_is_told(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(NotRunnableError, match="torchrun"):
        watched_arguments(["--nproc-per-node", "2"], WatchLimits(folder))
    assert "torchrun: error: " in capfd.readouterr().err


# One report of several.


def report_of(codes: list[str], watched: str = "Watched.") -> Report:
    from gradlab.doctor.finding import Cause, Finding

    return Report(
        [Finding(code, "error", "m", "seen", "a.py", 3, "f", "l", Cause("a.py", 2)) for code in codes], watched
    )


def test_reports_travel_whole(tmp_path: Path) -> None:
    for rank in (10, 9):
        expect_report(tmp_path / f"{rank}", f"rank {rank}")
    child = ChildReport("rank 9", report_of(["x"]), gradients={"1": 2.5})
    write_report(tmp_path / "9", child)
    assert read_reports(tmp_path) == ([child], ["rank 10"])
    write_report(tmp_path / "10", ChildReport("rank 10", report_of([])))
    assert [child.name for child in read_reports(tmp_path)[0]] == ["rank 9", "rank 10"]


def test_what_ranks_disagree_on_is_told() -> None:
    ranks = [ChildReport(f"rank {rank}", report_of(["all", "some"][: 1 + (rank > 0)])) for rank in range(3)]
    merged = merge_reports(ranks)
    assert {finding.code: finding.evidence for finding in merged} == {
        "all": "seen",
        "some": "seen (only in ranks 1 and 2 of 3 processes)",
    }
    assert merged.watched == "In each of ranks 0, 1 and 2: Watched."
    ranks[2].report.watched = "Watched more."
    assert merge_reports(ranks).watched == "In ranks 0 and 1: Watched. In rank 2: Watched more."
    assert merge_reports(ranks).judged
    assert not merge_reports(ranks, ["rank 3"]).judged
    ranks.append(ChildReport("rank 3", Report([], "Nothing.", judged=False), trained=False))  # as a parameter server
    assert merge_reports(ranks).judged


def test_gradients_that_ddp_should_share_are_compared() -> None:
    ranks = [ChildReport(f"rank {rank}", report_of([]), gradients={"1": 1.0, "2": 2.0}) for rank in range(2)]
    assert "differ" not in merge_reports(ranks).watched
    ranks[1].gradients["2"] = 3.0
    assert "At update 2 the gradients of rank 0 and rank 1 differ (norms 2 and 3)" in merge_reports(ranks).watched


def test_the_norm_is_that_of_the_wrapped_model() -> None:
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        gradients = RankGradients()
        gradients.start()
        inner, other = torch.nn.Linear(2, 1, bias=False), torch.nn.Linear(2, 1)
        model = DistributedDataParallel(inner)
        optimizer = torch.optim.SGD([*model.parameters(), *other.parameters()], lr=0.0)
        for _ in range(3):
            optimizer.zero_grad()
            (model(torch.tensor([[3.0, 4.0]])) + other(torch.ones(1, 2))).sum().backward()
            optimizer.step()
        gradients.stop()
        optimizer.step()
        del model  # one that outlives its process group may hang when it goes: in 1 of 1,200 times with torch 2.13
    finally:
        torch.distributed.destroy_process_group()
    assert gradients.norms == {"1": 5.0, "2": 5.0}  # 3 and 4 are the gradients of the weights
