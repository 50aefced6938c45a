"""A learner's own loops: three as people write them, and the pictures beside the account of a Run of the same loop."""

from __future__ import annotations

import math
import random
import threading
from typing import Any

import pytest
import torch
from torch import nn

from gradlab import Run, tasks
from gradlab.course import Patient
from gradlab.course.patients.run_loop import LoopOutcome, loop_of, run_loop
from gradlab.scenes import RunScenes
from gradlab.tasks import Task

MAX_UPDATES = 400
DIGITS, TEXT = tasks.digits(), tasks.text()


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


# Three loops in the manner of well-known examples: a classifier, a character model, a GAN -----------------------------


def make_pair(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
    return nn.ModuleDict({"generator": generator, "critic": critic})


DRAWN = torch.Generator().manual_seed(0)
PAIRS = [(torch.randn(16, 2, generator=DRAWN), torch.randn(16, 4, generator=DRAWN)) for _ in range(10)]
CLASSIFIER = """optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
for epoch in range(epochs):
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
"""
# Forgets to clear, and accumulates two pieces of text into each update.
CHARACTERS = """optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
for epoch in range(epochs):
    for start in range(0, len(batches), 2):
        for x, y in batches[start:start + 2]:
            loss = loss_fn(model(x), y) / 2
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
"""
# The generator's gradients are never cleared.
GAN = """criterion = torch.nn.BCEWithLogitsLoss()
optimizer_c = torch.optim.SGD(model["critic"].parameters(), lr=0.05)
optimizer_g = torch.optim.SGD(model["generator"].parameters(), lr=0.05)
for epoch in range(epochs):
    for real, noise in batches:
        optimizer_c.zero_grad()
        criterion(model["critic"](real), torch.ones(16, 1)).backward()
        fake = model["generator"](noise)
        criterion(model["critic"](fake.detach()), torch.zeros(16, 1)).backward()
        optimizer_c.step()
        criterion(model["critic"](fake), torch.ones(16, 1)).backward()
        optimizer_g.step()
"""


LOOPS = {
    "classifier": (DIGITS, CLASSIFIER),
    "characters": (TEXT, CHARACTERS),
    "gan": (Task("gan", make_pair, PAIRS, nn.functional.mse_loss), GAN),
}


def run_of(name: str) -> Run:
    task, text = LOOPS[name]
    run = Run(task)
    run.edit(text)
    run.reset()
    run.watch_gradients = True
    return run


def outcome_of(name: str) -> LoopOutcome:
    task, text = LOOPS[name]
    names = {
        "model": task.build(seed=0),
        "loss_fn": task.loss_fn,
        "batches": task.batches,
        "epochs": 3,
    }
    outcome = run_loop(loop_of(text, names), max_updates=MAX_UPDATES)
    assert outcome.trouble == ""
    return outcome


def counts_of(run: Run, updates: int) -> list[tuple[int, int]]:
    """Step through the loop; return the batches, fresh and stale, of each parameter's step, the most."""
    found = []
    while run.updates < updates:
        before = run.updates
        while run.updates == before:
            run.step()
        run.provenance.sync()
        line = run.source.splitlines()[run.line - 1].strip()
        stepped = run.loop.namespace[line.partition(".step()")[0]]
        ids = {id(p) for group in stepped.param_groups for p in group["params"]}
        pairs = zip(run.provenance.histories, run.provenance.params, strict=True)
        found.append(max((h.count() for h, p in pairs if id(p) in ids), key=sum))
    run.close()
    return found


@pytest.mark.parametrize("name", LOOPS)
def test_fresh_stale_and_the_arrows_are_what_a_run_of_the_loop_says(name: str) -> None:
    history = outcome_of(name).history
    assert len(history.rows) >= 12
    # The GAN's Run numbers the passes of both networks together, so counts are compared, not numbers.
    rows = [(row.fresh, row.stale) for row in history.rows]
    assert rows == counts_of(run_of(name), len(rows))
    if name == "gan":  # each optimizer has an account of its own
        assert history.optimizers == ["SGD 1", "SGD 2"]
        assert [row.fresh for row in history.of("SGD 1")] == [2] * 30
        assert [row.stale for row in history.of("SGD 2")] == list(range(30))
        return
    run, checked = run_of(name), 0
    for number, scene in history.gradients.items():
        run.advance(updates=number - run.updates)
        theirs = RunScenes(run).gradient()
        if len(theirs.arrows) == len(scene.arrows):  # older ones are put together from another number on
            checked += 1
            for mine, other in zip(scene.arrows, theirs.arrows, strict=True):
                assert (mine.batches, mine.stale) == (other.batches, other.stale)
                assert mine.share == pytest.approx(other.share, abs=1e-3)
    run.close()
    assert checked >= 3


# What a learner hands over --------------------------------------------------------------------------------------------


def test_the_models_that_a_loop_is_given_are_left_as_they_were() -> None:
    model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    x = torch.randn(8, 2)
    model(x).sum().backward()
    optimizer.step()
    state = {name: value.clone() for name, value in model.state_dict().items()}
    grads = [p.grad.clone() for p in model.parameters()]
    steps = [float(optimizer.state[p]["step"]) for p in model.parameters()]
    random = torch.get_rng_state()

    def train(epochs: int) -> None:
        model.eval()
        model[3] = nn.Linear(4, 1)
        for _ in range(epochs):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()

    patient = Patient(train, epochs=5)
    assert "5 updates of Adam" in patient.text
    assert patient.outcome().history.updates == 5
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert all(torch.equal(p.grad, old) for p, old in zip(model.parameters(), grads, strict=True))
    assert [float(optimizer.state[p]["step"]) for p in model.parameters()] == steps
    assert model.training
    assert torch.equal(torch.get_rng_state(), random)


def test_a_function_is_run_as_given_with_its_globals_and_its_closure() -> None:
    lr = 0.05

    def train() -> None:
        model = DIGITS.build(seed=0)
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        for x, y in DIGITS.batches:
            DIGITS.loss_fn(model(x), y).backward()
            optimizer.step()

    patient = Patient(train)
    assert [finding.code for finding in patient.outcome().findings] == ["missing-zero-grad"]
    assert "line 6" in patient._now().note
    patient.edit(
        patient.outcome().text.replace("        DIGITS.loss", "        optimizer.zero_grad()\n        DIGITS.loss")
    )
    assert patient.outcome().clean
    assert "The doctor finds nothing." in patient._now().note


def test_a_loop_without_an_optimizer_is_seen_too() -> None:
    text = """w = torch.zeros(2, requires_grad=True)
for _ in range(6):
    loss = (w - 1).square().sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad = None
"""
    rows = Patient(text).outcome().history.rows
    assert [row.loss for row in rows] == pytest.approx([2 * 0.64**k for k in range(6)], rel=1e-5)
    assert [row.norm for row in rows] == pytest.approx([2 * math.sqrt(2) * 0.8**k for k in range(6)], rel=1e-5)


def test_a_loop_that_trains_in_a_thread_of_its_own_is_seen_too() -> None:
    text = """import threading
def train():
    w = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(6):
        (w - 1).square().sum().backward()
        optimizer.step()
thread = threading.Thread(target=train)
thread.start()
thread.join()
"""
    outcome = run_loop(
        loop_of(text, {}), max_updates=MAX_UPDATES
    )  # it holds the process's lock while the doctor reads the source
    assert outcome.trouble == ""
    assert [row.stale for row in outcome.history.rows] == list(range(6))


def test_a_long_loop_ends_at_the_limit_and_what_it_did_is_shown() -> None:
    start = "w = torch.nn.Parameter(torch.zeros(2))\nwhile True:\n"
    patient = Patient(f"{start}    (w - 1).square().sum().backward()\n    w.grad = None\n")
    assert patient.outcome().history.updates == 300
    assert "stopped after 300 updates" in patient._now().note


@pytest.mark.parametrize(
    ("given", "names", "kind", "words"),
    [
        ("the-flat-los", {}, ValueError, "the-flat-loss"),
        (3, {}, TypeError, "a function"),
        (lambda: None, {}, TypeError, "lambda"),
        (make_pair, {"sed": 2}, TypeError, "sed"),
        ("the-flat-loss", {"lr": 1}, TypeError, "needs nothing"),
    ],
)
def test_what_is_no_loop_is_refused_in_words(given: Any, names: dict[str, Any], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        Patient(given, **names)


def test_a_loop_beside_a_thread_of_ones_own_is_refused() -> None:
    over = threading.Event()

    def wait() -> None:
        over.wait()

    thread = threading.Thread(target=wait, name="mine")
    thread.start()
    random.seed(5)
    before = random.getstate()
    try:
        outcome = run_loop(loop_of("random.random()", {"random": random}))
    finally:
        over.set()
        thread.join()
    assert outcome.trouble.startswith("Your thread 'mine' runs")
    assert random.getstate() == before
