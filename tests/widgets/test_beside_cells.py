"""Labs beside a plain PyTorch cell: the cell computes the same as alone, and the browser is notified at once."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernels import Kernel, Message, started_kernel

pytestmark = pytest.mark.slow  # each test runs a kernel with a cell of its own

# Training in plain PyTorch: dropout, bf16 autocast, a scaler that has to skip every tenth step, seeded numbers.
TRAIN = """
import hashlib, os, time, torch
from torch import nn
torch.set_num_threads(1)
def train(seconds=0.0):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Dropout(0.5), nn.Softmax(1), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=10_000)
    x, y, draws, skipped, end = torch.randn(16, 32), torch.randint(0, 4, (16,)), [], 0, time.monotonic() + seconds
    steps = 0
    while steps < 150 or time.monotonic() < end:
        inf = steps % 10 == 9
        if steps < 150:
            before, scale = model[0].weight.detach().clone(), scaler.get_scale()
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16):
                loss = nn.functional.cross_entropy(model(x), y) * (float("inf") if inf else 1.0)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            skipped += torch.equal(before, model[0].weight)
            draws.append(torch.rand(1).item())
        steps += 1
        if steps >= 150 or steps % 15 == 0:
            time.sleep(seconds / 20)  # the widget's requests get their turn in the middle of the training
    state = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
    return hashlib.sha256(state).hexdigest(), skipped, hash(tuple(draws)), scaler.get_scale()
"""
INSTRUMENTS = {
    "swing": "from gradlab.course import swing; shown = swing()",
    "ring": "from gradlab.course import ring_of_orders; shown = ring_of_orders()",
    "peak": "from gradlab.course import peak; shown = peak()",
    "loss scale": "from gradlab.course import loss_scale; shown = loss_scale()",
    "ForecastLab": "from gradlab.course import ForecastLab; shown = ForecastLab('gpt2', context=64)",
}
TURNS = {
    "swing": [("turn", {"name": "lr", "value": 0.3}), ("turn", {"name": "lr", "value": 0.5})],
    "ForecastLab": [("turn", {"name": "batch", "value": 2}), ("forecast", {})],
}


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    with started_kernel() as kernel:
        kernel.cell("import gradlab\nfrom gradlab import Lab\n" + TRAIN + "alone = train()")
        yield kernel


def test_a_cell_trains_beside_a_lab_as_it_does_alone(kernel: Kernel) -> None:
    widget = kernel.widget("shown = Lab('digits')\ndisplay(shown)")
    kernel.ask(widget, "hello")
    cell = kernel.begin("beside = train(0.5)")
    kernel.play(widget, 0.5)
    assert kernel.wait(cell)["status"] == "ok", kernel.errors
    assert kernel.value("beside == alone") == "True", kernel.value("(beside, alone)")
    assert kernel.ask(widget, "update")["frames"], "it goes on after the cell"
    assert kernel.value("train() == alone") == "True", "and it leaves nothing behind"


def test_a_cell_trains_beside_instruments_as_it_does_alone(kernel: Kernel) -> None:
    widgets = {name: kernel.widget(f"{code}\ndisplay(shown)") for name, code in INSTRUMENTS.items()}
    for widget in widgets.values():
        kernel.ask(widget, "hello")
    cell = kernel.begin("beside = train(1.0)")
    newest = []
    for name, widget in widgets.items():
        *_, number = [kernel.send(widget, do, **fields) for do, fields in TURNS.get(name, [("hello", {})])]
        newest.append(number)
    assert kernel.wait(cell)["status"] == "ok", kernel.errors
    assert all(kernel.answer(number)["frames"] for number in newest)
    assert kernel.value("beside == alone") == "True", kernel.value("(beside, alone)")


def test_the_browser_is_told_that_a_cell_runs(kernel: Kernel, tmp_path: Path) -> None:
    """With Run All, a lab's first request comes while another cell runs: there is a lab to see all the same."""
    shows = "lab = Lab('bowl'); lab.run(updates=3); display(lab)"
    requests = tmp_path / "asked"  # the cell runs until the browser has asked for all of it
    waits = f"while not os.path.exists({str(requests)!r}):\n    time.sleep(0.01)"
    cell = kernel.begin(f"{shows}\n{waits}\nupdates = lab.runner.updates")
    widget = kernel.opened()
    number = kernel.send(widget, "hello")
    notice = kernel.notice(number)
    assert number not in kernel.answers, "the request has waited for the cell without a word"
    assert notice["busy"] == "A cell is running. The lab continues when the cell has finished."
    (frame,) = notice["frames"]
    assert frame["whole"]
    kernel.send(widget, "update")
    for _ in range(3):
        newest = kernel.send(widget, "update")  # of those that wait, the newest is done
    kernel.notice(newest)
    requests.touch()
    kernel.wait(cell)
    answer = kernel.answer(number)
    assert answer["new"], "the answer itself comes after the cell"
    assert shown(answer) == shown(notice)
    kernel.answer(newest)
    assert kernel.value("(updates, lab.runner.updates)") == "(3, 4)"


def shown(reply: Message) -> list[object]:
    """The contents of a reply's whole frame."""
    frame = dict(reply["frames"][0])
    return [frame.pop("f") >= 0, frame.pop("left_off"), frame]


def test_a_lab_plays_beside_long_calls_of_ours(kernel: Kernel) -> None:
    widget = kernel.widget("played = Lab('digits'); display(played)")
    kernel.ask(widget, "hello")
    for call in (
        "gradlab.compare('digits', {'a': gradlab.Recipe(), 'b': gradlab.Recipe(zero_grad=False)}, updates=500)",
        "Lab('bowl').record(updates=80)",
    ):
        cell = kernel.begin(f"before = played.runner.updates; {call}; moved = played.runner.updates - before")
        kernel.play(widget, 0.7)
        assert kernel.wait(cell)["status"] == "ok", (call, kernel.errors)
        assert int(kernel.value("moved")) > 0, call
    state = "[p.detach().clone() for p in {}.model.parameters()]"
    kernel.cell("same = gradlab.Run(gradlab.tasks.digits()); same.advance(updates=played.runner.updates)")
    kernel.cell(f"a, b = {state.format('same')}, {state.format('played.runner')}")
    assert kernel.value("all(torch.equal(p, q) for p, q in zip(a, b, strict=True))") == "True"


def test_an_instrument_that_listens_hears_its_own_cell(kernel: Kernel) -> None:
    """A watch or a Ledger around a long call of ours: a lab that plays is none of theirs, and waits."""
    widget = kernel.widget("played = Lab('digits', panels=['loss', 'memory']); display(played)")
    kernel.ask(widget, "hello")
    setup = "from gradlab import Ledger, watch\nr = gradlab.Run(gradlab.tasks.digits())\n"
    blocks = {
        "watch": "with watch() as heard:\n    r.advance(updates=300)\nresult = heard.watched, heard.findings",
        "Ledger": "with Ledger(r.model, [r.optimizer]) as heard:\n    r.advance(updates=150)\nresult = heard.at_peak",
    }
    for name, block in blocks.items():
        kernel.cell(f"{setup}{block}\nalone_{name} = result")
        cell = kernel.begin(f"{setup}{block}")
        kernel.play(widget, 0.6)
        assert kernel.wait(cell)["status"] == "ok", kernel.errors
        assert kernel.value(f"result == alone_{name}") == "True", kernel.value(f"(result, alone_{name})")


NO_STEP = '''"""for x, y in batches * 1000000:
    loss = loss_fn(model(x), y)
"""'''


def test_a_loop_without_a_step_blocks_nothing(kernel: Kernel) -> None:
    widget = kernel.widget("stuck = Lab('bowl', panels=['loss']); stuck.run(updates=2); display(stuck)")
    kernel.cell(f"_ = stuck.edit({NO_STEP})")
    answer = kernel.ask(widget, "update")
    assert "step()" in answer["frames"][-1]["note"]
    assert answer["work"] < 10_000, "it would be a minute"  # a second by itself; the machine may be busy
    kernel.cell("_ = stuck.switch(lr=0.05)")
    assert kernel.value("stuck.runner.updates") == "2", "the update that never ends is given up"
    assert kernel.ask(widget, "update")["frames"][-1]["updates"] == 3


def test_an_interrupt_reaches_a_request_between_cells(kernel: Kernel) -> None:
    slow = "import time\nclass Slow(nn.Linear):\n    def forward(self, x):\n        time.sleep(20)\n        return x\n"
    kernel.cell(f"{slow}x = torch.ones(1, 2)\n"
                "task = gradlab.tasks.Task('slow', lambda seed: Slow(2, 1), [(x, x)], nn.functional.mse_loss)\n"
                "lab = Lab(task, panels=['loss'])")  # fmt: skip
    widget = kernel.widget("display(lab)")
    number = kernel.send(widget, "update")
    kernel.hear(0.5)
    kernel.manager.interrupt_kernel()
    assert "Interrupted" in kernel.answer(number, seconds=15)["frames"][-1]["note"]
    kernel.manager.interrupt_kernel()  # nothing is at work: it ends nothing
    assert kernel.value("1 + 1") == "2"


STUCK = """def stuck():
    while True: pass
for x, y in batches:
    loss_fn(model(x), y).backward()
    stuck()
"""


@pytest.mark.parametrize("how", ["interrupt", "pause"])
def test_a_statement_that_never_ends_is_ended(kernel: Kernel, how: str) -> None:
    widget = kernel.widget("endless = Lab('bowl', panels=['loss']); endless.run(updates=2); display(endless)")
    kernel.ask(widget, "edit", text=STUCK)
    number = kernel.send(widget, "frames", count=1, every=16.7, updates=1, play=1)
    kernel.hear(1.5)
    assert number not in kernel.answers
    if how == "interrupt":
        kernel.manager.interrupt_kernel()
    else:
        kernel.send(widget, "pause")
    frame = kernel.answer(number, seconds=15)["frames"][-1]
    assert "Interrupted" in frame["note"]
    assert (frame["stop"], frame["draft"]) == (True, STUCK), "the text is not lost"
    assert kernel.ask(widget, "update")["frames"][-1]["updates"] == 3, "with the loop before"


def test_an_interrupt_of_a_play_keeps_the_loop(kernel: Kernel) -> None:
    widget = kernel.widget("filling = Lab('digits', panels=['loss']); display(filling)")
    kernel.ask(widget, "edit", text="for x, y in batches * 1000:\n    loss_fn(model(x), y).backward()\n")
    for _ in range(5):
        kernel.play(widget, 0.2)
        count = int(kernel.value("filling.runner.loop.backwards"))
        number = kernel.send(widget, "frames", count=6, every=16.7, updates=1, play=1)
        time.sleep(0.02)
        kernel.manager.interrupt_kernel()
        kernel.answer_or_hello(widget, number)
        assert kernel.value("filling.runner.loop.is_edited") == "True"
        assert int(kernel.value("filling.runner.loop.backwards")) >= count, "nothing is taken back"


def test_an_earlier_view_stays_as_its_text_speaks_of_it(kernel: Kernel) -> None:
    first = kernel.widget("lab = Lab('bowl', panels=['loss']); lab.run(updates=4); display(lab)")
    kernel.ask(first, "hello")
    kernel.cell("_ = lab.run(updates=3)")
    second = kernel.widget("lab.run(updates=10); lab.switch(zero_grad=False); display(lab)")
    (frame,) = kernel.ask(first, "hello")["frames"]
    assert (frame["whole"], frame["frozen"], frame["updates"], frame["values"]["zero_grad"]) == (True, True, 7, True)
    assert "continues in the next cell" in frame["note"]
    assert kernel.ask(first, "update")["frames"][-1]["updates"] == 7
    assert kernel.ask(second, "update")["frames"][-1]["updates"] == 18
    third = kernel.widget("display(lab)")
    (frame,) = kernel.ask(second, "hello")["frames"]
    assert (frame["frozen"], frame["updates"], frame["values"]["zero_grad"]) == (True, 18, False)
    assert "frozen" not in kernel.ask(third, "hello")["frames"][-1]


def test_an_interrupt_ends_the_cell_that_serves(kernel: Kernel) -> None:
    widget = kernel.widget("lab = Lab('digits'); display(lab)")
    kernel.ask(widget, "hello")
    cell = kernel.begin("gradlab.Run(gradlab.tasks.digits()).advance(updates=10_000_000)")
    kernel.play(widget, 0.5)
    kernel.manager.interrupt_kernel()
    assert kernel.wait(cell, seconds=15)["ename"] == "KeyboardInterrupt"
    assert kernel.value("1 + 1") == "2"
    assert kernel.manager.provisioner.process.poll() is None, signal.SIGINT


def test_an_interrupt_that_python_drops_comes_again(kernel: Kernel) -> None:
    kernel.widget("lab = Lab('digits'); display(lab)")
    code = """
import signal, weakref
class Key: pass
def interrupt(_): signal.raise_signal(signal.SIGINT)
key = Key()
dropped = weakref.ref(key, interrupt)
del key
while True: pass
"""
    assert kernel.wait(kernel.begin(code), seconds=15)["ename"] == "KeyboardInterrupt"
