"""The checklists of notebooks 03 and 10: no rule fires on a healthy run, and each fires on what it is for."""

from __future__ import annotations

import pytest
import torch

from gradlab import Recipe, tasks
from gradlab.course.checklist import CHECKLIST_RULES, check_symptoms
from gradlab.course.patients.case import patient_case
from gradlab.course.patients.loop_history import LoopHistory
from gradlab.course.patients.run_loop import Limits, loop_of, run_loop

UPDATES = {name: 24 if name == "text" else 60 for name in tasks.names()}  # text is the slowest
WAYS = {
    "plain": {},
    "window of 4": {"accumulate": 4},
    "fp16, clipped": {"amp": "fp16", "clip": 1.0},
    "zeros": {"set_to_none": False},
}
# A rate at which each optimizer learns each task; the task's own is for plain SGD.
SHARE = {"sgd": 1.0, "momentum": 0.1}
ADAM = {"bowl": 0.05, "line": 0.05, "spiral": 0.01, "digits": 0.003, "text": 0.003}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def record_of(task_name: str, recipe: Recipe, updates: int) -> LoopHistory:
    task = tasks.get(task_name)
    names = {"model": task.build(seed=0), "loss_fn": task.loss_fn, "batches": task.batches, "device": task.device}
    return run_loop(loop_of(recipe.source(), {**names, "epochs": 10**6}), Limits(updates, 60.0)).history


def healthy(task: str, optimizer: str, **more: object) -> Recipe:
    lr = tasks.get(task).lr * SHARE[optimizer] if optimizer in SHARE else ADAM[task]
    return Recipe(optimizer=optimizer, lr=lr, **more)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw"])
@pytest.mark.parametrize("task", tasks.names())
def test_no_rule_fires_on_a_healthy_run(task: str, optimizer: str, way: str) -> None:
    record = record_of(task, healthy(task, optimizer, **WAYS[way]), UPDATES[task])
    assert record.updates >= UPDATES[task]
    assert check_symptoms(record).fired == []


@pytest.mark.parametrize("name", ["three-mistakes", "learned-by-heart", "the-new-head", "four-times-the-work"])
def test_no_rule_fires_on_a_cured_patient(name: str) -> None:
    case = patient_case(name)
    assert check_symptoms(run_loop(case.loop(case.cured), case.definition.limits).history).fired == []


def test_a_loop_that_looks_odd_is_healthy_too() -> None:
    case = patient_case("three-mistakes")
    assert check_symptoms(run_loop(case.loop(case.sick), case.definition.limits).history).fired == []


def test_a_batch_norm_that_is_frozen_on_purpose_is_a_question_not_a_proof() -> None:
    text = """model = nn.Sequential(nn.Linear(2, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model[1].eval()
for _ in range(10):
    optimizer.zero_grad()
    model(torch.ones(8, 2)).square().mean().backward()
    optimizer.step()
"""
    outcome = run_loop(loop_of(text, {}), Limits(20, 10.0))
    checklist = check_symptoms(outcome.history, "10")
    assert outcome.clean
    assert checklist.fired == ["evaluation-mode"]
    assert "or a batch norm is frozen on purpose" in repr(checklist)


SICK = {
    "the-swinging-loss": {"full-before-backward", "longer-than-its-batches", "fast-then-worse"},
    "the-flat-loss": {"no-gradient"},
    "the-new-head": {"no-gradient"},
    "killed-at-night": {"graph-kept"},
    "learned-by-heart": {"evaluation-mode"},
}


@pytest.mark.parametrize("name", SICK)
def test_the_rules_tell_the_patients_apart(name: str) -> None:
    case = patient_case(name)
    assert set(check_symptoms(run_loop(case.loop(case.sick), case.definition.limits).history).fired) == SICK[name]


LOOP = """w = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([w], lr={lr})
for _ in range(12):
    optimizer.zero_grad()
    loss = {loss}
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("lr", "loss", "rule"),
    [
        ("1e30", "w.pow(4).sum()", "loss-first"),
        ("0.1", "w.sub(1).abs().sqrt().sum()", "gradient-first"),
        ("1e-9", "w.square().sum()", "not-moved"),
    ],
)
def test_the_other_rules_fire_on_what_they_are_for(lr: str, loss: str, rule: str) -> None:
    record = run_loop(loop_of(LOOP.format(lr=lr, loss=loss), {}), Limits()).history
    assert rule in check_symptoms(record).fired


def test_every_rule_is_seen_to_fire_somewhere() -> None:
    tried = set().union(*SICK.values()) | {"loss-first", "gradient-first", "not-moved"}
    assert tried == {rule.name for rule in CHECKLIST_RULES}


def test_the_norm_that_grows_while_the_loss_falls_is_no_sign_of_a_pile() -> None:
    """What notebook 03 said before: on healthy digits both happen at once."""
    rows = record_of("digits", healthy("digits", "sgd"), 240).rows
    assert rows[-1].loss < 0.7 * rows[0].loss
    assert rows[-1].norm > 2 * rows[0].norm


def test_a_checklist_reads_as_words() -> None:
    checklist = check_symptoms(record_of("digits", Recipe(lr=0.05, zero_grad=False), 20), "03")
    assert "! Is .grad full just before" in repr(checklist)
    assert "update 2, 1 batch that a step had applied" in repr(checklist)
    assert "It was not cleared" in checklist._repr_mimebundle_()["text/html"]
    with pytest.raises(ValueError, match="03, 10"):
        check_symptoms(LoopHistory(), "04")
