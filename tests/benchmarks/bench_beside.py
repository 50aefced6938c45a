"""Each instrument beside a plain PyTorch cell, and beside a thread of the learner's own, in a kernel with a subshell.

``python tests/benchmarks/bench_beside.py [SECONDS]``: for so long (60 by default) each instrument is used while a cell
trains with dropout, bf16 autocast and a scaler that has to skip steps; then beside a thread that does the same. Every
training is compared with the same one alone: weights, the steps that were skipped, the numbers drawn, its speed.
"""

from __future__ import annotations

import ast
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.kernels import Kernel, started_kernel

SETUP = """
import hashlib, threading, time, torch
from torch import nn
import gradlab
from gradlab import Lab, Ledger, Recipe, Run, compare, forecast, tasks, watch
torch.set_num_threads(1)

def train():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=10_000)
    x, y, draws, skipped = torch.randn(16, 32), torch.randint(0, 4, (16,)), [], 0
    for step in range(100):
        before = model[0].weight.detach().clone()
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = nn.functional.cross_entropy(model(x), y) * (float("inf") if step % 10 == 9 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        skipped += torch.equal(before, model[0].weight)
        draws.append(torch.rand(1).item())
    state = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(state).hexdigest()[:8], skipped, hash(tuple(draws))

def trained_for(seconds):
    results, times, end = [], [], time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.perf_counter()
        results.append(train())
        times.append(time.perf_counter() - began)
    return results, times

def thread_for(seconds):
    def work():
        try:
            kept.append(trained_for(seconds))
        except BaseException as error:
            kept.append(error)
    kept = []
    thread = threading.Thread(target=work)
    thread.start()
    return thread, kept

def repeated(call, seconds):
    out, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            out.append(call())
        except Exception as error:
            out.append(f"{type(error).__name__}: {error}")
    return out

def weights(run):
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in run.model.parameters())).hexdigest()[:8]

dropout = tasks.Task(name="dropout", batches=[(torch.ones(4, 8), torch.ones(4, 1))] * 8, loss_fn=nn.functional.mse_loss,
    builder=lambda seed: nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 1)))
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)); sgd = torch.optim.SGD(net.parameters(), lr=0.01)
xs, ys = torch.randn(16, 32), torch.randint(0, 4, (16,))
first = {k: v.clone() for k, v in net.state_dict().items()}
def plain(n=20):
    net.load_state_dict(first); sgd.zero_grad()
    for _ in range(n):
        sgd.zero_grad(); nn.functional.cross_entropy(net(xs), ys).backward(); sgd.step()
def a_run():
    run = Run(dropout); run.advance(updates=40); return weights(run)
def a_ledger():
    with Ledger(net, [sgd], [xs, ys]) as ledger: plain()
    return ledger.peak, tuple(ledger.at_peak.values())
def any_ledger():
    with Ledger() as ledger: plain()
    return ledger.peak > 0
def a_watch():
    with watch(net, sgd) as report: plain()
    return report.watched, len(report.findings)
def a_compare():
    return compare("bowl", {"a": Recipe(), "b": Recipe(zero_grad=False)}, updates=20).table
def a_forecast():
    return str(forecast(net, batch=(xs, ys), loss_fn=nn.functional.cross_entropy, device="cuda"))
alone = train(); speed = sorted(trained_for(2.0)[1])
"""
PLAYED = [("frames", {"count": 3, "every": 16.7, "updates": 1, "play": 1})]
WIDGETS = {
    "Lab, playing": (
        "Lab('digits', panels=['loss', 'held-out loss', 'gradient', 'memory', 'landscape', 'picture'])",
        PLAYED,
    ),
    "Lab of dropout, playing": ("Lab(dropout)", PLAYED),
    "swing": ("swing()", [("turn", {"name": "lr", "value": v}) for v in (0.2, 0.4)]),
    "ring": ("ring_of_orders()", [("hello", {})]),
    "peak": ("peak()", [("hello", {})]),
    "loss scale": ("loss_scale()", [("hello", {})]),
    "two ranks": ("two_ranks()", [("turn", {"name": "moment", "value": v}) for v in (1, 2, 3)]),
    "ForecastLab": (
        "ForecastLab('gpt2', context=64)",
        [each for b in (1, 2) for each in (("turn", {"name": "batch", "value": b}), ("forecast", {}))],
    ),
}
CALLS = {
    "Run (dropout)": "a_run",
    "Ledger(model, ...)": "a_ledger",
    "Ledger()": "any_ledger",
    "watch": "a_watch",
    "compare": "a_compare",
    "forecast": "a_forecast",
}


def drive(kernel: Kernel, widget: str, requests: list[tuple[str, dict[str, object]]], seconds: float) -> int:
    """Send the requests in turn for some seconds, each after the answer to the one before; return the answers."""
    end, number, sent = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end and kernel.is_alive:
        if number in kernel.answers or not number:
            do, fields = requests[sent % len(requests)]
            number, sent = kernel.send(widget, do, **fields), sent + 1
        kernel.hear(0.002)
    return sent - 1


def verdict(kernel: Kernel, results: str) -> str:
    """How many trainings there were, how many are the one alone in all, and their speed beside it."""
    if kernel.value(f"isinstance({results}, BaseException)") == "True":
        return f"the training ended in {kernel.value(results)}"
    equal, count = ast.literal_eval(kernel.value(f"(sum(r == alone for r in {results}[0]), len({results}[0]))"))
    times, before = ast.literal_eval(kernel.value(f"({results}[1], speed)"))
    return f"{equal} of {count} equal, {100 * statistics.median(before) / statistics.median(times):4.0f} % speed"


def main(seconds: float) -> None:
    with_widgets = "from gradlab.course import ForecastLab, loss_scale, peak, ring_of_orders, swing, two_ranks"
    for name, (code, requests) in WIDGETS.items():
        with started_kernel() as kernel:
            kernel.cell(SETUP + with_widgets)
            widget = kernel.widget(f"shown = {code}; display(shown)")
            kernel.ask(widget, "hello")
            cell = kernel.begin(f"beside = trained_for({seconds})")
            answers = drive(kernel, widget, requests, seconds - 1)
            kernel.wait(cell, seconds + 60)
            told = [notice["busy"] for notice in kernel.notices.values()][:1]
            cell_row = f"{verdict(kernel, 'beside')}; {answers} answers, {told}"
            kernel.cell(f"thread, kept = thread_for({seconds / 2})")
            answers = drive(kernel, widget, requests, seconds / 2)
            kernel.cell("thread.join()", seconds + 60)
            thread_row = f"{verdict(kernel, 'kept[0]')}; {answers} answers"
            print(f"{name:24} cell:   {cell_row}\n{'':24} thread: {thread_row}; alive: {kernel.is_alive}", flush=True)
    for name, call in CALLS.items():
        with started_kernel() as kernel:
            kernel.cell(f"{SETUP}\nonce = {call}()")
            widget = kernel.widget("shown = Lab('digits'); display(shown)")
            kernel.ask(widget, "hello")
            cell = kernel.begin(f"beside = repeated({call}, {seconds / 2}); after = train()")
            answers = drive(kernel, widget, PLAYED, seconds / 2 - 1)
            kernel.wait(cell, seconds + 60)
            row = kernel.value("(sum(r == once for r in beside), len(beside), after == alone)")
            print(f"{name:24} a lab plays: (equal, all, training after) = {row}; {answers} answers", flush=True)
            beside = f"beside = repeated({call}, {seconds / 2 - 1})"
            kernel.cell(f"thread, kept = thread_for({seconds / 2}); {beside}; thread.join()", seconds + 60)
            row = kernel.value("(sum(r == once for r in beside), len(beside), {str(r) for r in beside if r != once})")
            print(f"{'':24} a thread: (equal, all, others) = {row[:300]}", flush=True)
            print(f"{'':24} the thread: {verdict(kernel, 'kept[0]')}; alive: {kernel.is_alive}", flush=True)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
