"""A learner's own loops: three as people write them, and the pictures beside the account of a Run of the same loop."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from gradlab import Run, tasks
from gradlab.course import Patient
from gradlab.course.patients.run_loop import Limits, loop_of, run_loop
from gradlab.tasks import Task

LIMITS = Limits(updates=400, seconds=60.0)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


# Three loops in the manner of well-known examples: a classifier, a character model, a GAN -----------------------------

DIGITS = tasks.digits()
TEXT = tasks.text()


def train_classifier(epochs: int = 2) -> None:
    model = DIGITS.build(seed=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    for epoch in range(epochs):
        model.train()
        for x, y in DIGITS.batches:
            optimizer.zero_grad()
            loss = DIGITS.loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(epoch, float(DIGITS.loss_fn(model(x), y)))


def train_characters() -> None:
    # Forgets to clear, and accumulates two pieces of text into each update.
    model = TEXT.build(seed=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    for i, (x, y) in enumerate(TEXT.batches * 3):
        loss = TEXT.loss_fn(model(x), y) / 2
        loss.backward()
        if i % 2 == 1:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


def make_pair(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
    return nn.ModuleDict({"generator": generator, "critic": critic})


PAIRS = [
    (
        torch.randn(16, 2, generator=torch.Generator().manual_seed(at)),
        torch.randn(16, 4, generator=torch.Generator().manual_seed(100 + at)),
    )
    for at in range(10)
]


def train_gan() -> None:
    model = make_pair()
    criterion = nn.BCEWithLogitsLoss()
    optimizer_c = torch.optim.SGD(model["critic"].parameters(), lr=0.05)
    optimizer_g = torch.optim.SGD(model["generator"].parameters(), lr=0.05)
    for real, noise in PAIRS:
        optimizer_c.zero_grad()
        criterion(model["critic"](real), torch.ones(16, 1)).backward()
        fake = model["generator"](noise)
        criterion(model["critic"](fake.detach()), torch.zeros(16, 1)).backward()
        optimizer_c.step()
        # The generator's gradients are never cleared.
        criterion(model["critic"](fake), torch.ones(16, 1)).backward()
        optimizer_g.step()


CLASSIFIER = """optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
for epoch in range(epochs):
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
"""
CHARACTERS = """optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
for epoch in range(epochs):
    for start in range(0, len(batches), 2):
        for x, y in batches[start:start + 2]:
            loss = loss_fn(model(x), y) / 2
            loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
"""
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


def counts_of_a_run(task: Any, text: str, updates: int) -> list[tuple[int, int]]:
    """Step through the loop in a Run; return the batches, fresh and stale, of each parameter's step, the most."""
    run = Run(task)
    run.edit(text)
    run.reset()
    run.watch_gradients = True
    found = []
    while run.updates < updates:
        before = run.updates
        while run.updates == before:
            run.step()
        run.provenance.sync()
        ids = {id(p) for group in last_stepped(run).param_groups for p in group["params"]}
        pairs = zip(run.provenance.histories, run.provenance.params, strict=True)
        found.append(max((h.count() for h, p in pairs if id(p) in ids), key=sum))
    run.close()
    return found


def last_stepped(run: Run) -> torch.optim.Optimizer:
    line = run.source.splitlines()[run.line - 1].strip()
    return run.namespace[line.partition(".step()")[0]]


@pytest.mark.parametrize(
    ("function", "task", "text"),
    [
        (train_classifier, DIGITS, CLASSIFIER),
        (train_characters, TEXT, CHARACTERS),
        (train_gan, Task("gan", make_pair, PAIRS, nn.functional.mse_loss), GAN),
    ],
    ids=["classifier", "characters", "gan"],
)
def test_what_is_fresh_and_what_is_stale_is_what_a_run_of_the_loop_says(function: Any, task: Any, text: str) -> None:
    outcome = run_loop(loop_of(function, {}), LIMITS)
    assert outcome.trouble == ""
    assert len(outcome.history.rows) >= 12
    # The GAN's Run numbers the passes of both networks together, so counts are compared, not numbers.
    rows = [(row.fresh, row.stale) for row in outcome.history.rows]
    assert rows == counts_of_a_run(task, text, len(rows))
    assert any(stale for _, stale in rows) == (function is not train_classifier)


@pytest.mark.parametrize(("function", "text"), [(train_classifier, CLASSIFIER), (train_characters, CHARACTERS)])
def test_the_arrows_are_those_of_a_run(function: Any, text: str) -> None:
    from gradlab.scenes import RunScenes

    outcome = run_loop(loop_of(function, {}), LIMITS)
    run = Run(DIGITS if function is train_classifier else TEXT)
    run.watch_gradients = True
    run.edit(text)
    run.reset()
    checked = 0
    for number, scene in outcome.history.gradients.items():
        run.advance(updates=number - run.updates)
        theirs = RunScenes(run).gradient()
        if len(theirs.arrows) != len(scene.arrows):  # older ones are put together from another number on
            continue
        checked += 1
        assert scene.total[0] == pytest.approx(theirs.total[0], rel=1e-4)
        for mine, other in zip(scene.arrows, theirs.arrows, strict=True):
            assert (mine.batches, mine.stale) == (other.batches, other.stale)
            assert mine.share == pytest.approx(other.share, abs=1e-3)
    run.close()
    assert checked >= 3


def test_each_optimizer_has_an_account_of_its_own() -> None:
    record = run_loop(loop_of(train_gan, {}), LIMITS).history
    assert record.optimizers == ["SGD 1", "SGD 2"]
    assert [row.fresh for row in record.of("SGD 1")] == [2] * 10
    assert [row.stale for row in record.of("SGD 2")] == list(range(10))


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


def test_a_long_loop_ends_at_the_limit_and_what_it_did_is_shown() -> None:
    text = """w = torch.nn.Parameter(torch.zeros(2))
optimizer = torch.optim.SGD([w], lr=0.1)
while True:
    optimizer.zero_grad()
    (w - 1).square().sum().backward()
    optimizer.step()
"""
    patient = Patient(text)
    assert patient.outcome().history.updates == 300
    assert "stopped after 300 updates" in patient._now().note


@pytest.mark.parametrize(
    ("given", "names", "kind", "words"),
    [
        ("the-flat-los", {}, ValueError, "the-flat-loss"),
        (3, {}, TypeError, "a function"),
        (lambda: None, {}, TypeError, "lambda"),
        (train_classifier, {"epoch": 2}, TypeError, "epoch"),
        ("the-flat-loss", {"lr": 1}, TypeError, "needs nothing"),
    ],
)
def test_what_is_no_loop_is_refused_in_words(given: Any, names: dict[str, Any], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        Patient(given, **names)
