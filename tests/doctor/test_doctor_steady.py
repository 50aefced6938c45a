"""A loop that repeats itself is no longer written down: what the doctor says is the same as if it were, to the word."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest
import torch
from sampling import every
from torch import nn

from gradlab.doctor import watch
from gradlab.doctor.listeners.steady import SteadyLoop

SEEDS = range(24)


class Loop:
    """Two models and their optimizers, and updates of many kinds."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.1), nn.Linear(4, 1))
        self.critic = nn.Linear(1, 1)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.optimizer_c = torch.optim.SGD(self.critic.parameters(), lr=1e-3)

    def loss(self) -> torch.Tensor:
        return self.model(torch.randn(5, 3)).square().mean()

    def healthy(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()

    def forgets(self) -> None:
        self.loss().backward()
        self.optimizer.step()

    def zeroes(self) -> None:
        self.optimizer.zero_grad(set_to_none=False)
        self.loss().backward()
        self.optimizer.step()

    def window(self) -> None:
        for _ in range(3):
            (self.loss() / 3).backward()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def clips(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def clips_late(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        self.optimizer.step()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)

    def steps_twice(self) -> None:
        self.healthy()
        self.optimizer.step()

    def two_nets(self) -> None:
        fake = self.model(torch.randn(5, 3))
        self.optimizer_c.zero_grad()
        self.critic(fake.detach()).mean().backward()
        self.optimizer_c.step()
        self.optimizer.zero_grad()
        self.critic(fake).mean().backward()
        self.optimizer.step()

    def validates(self) -> None:
        with torch.no_grad():
            for _ in range(4):
                self.loss()

    def evaluates(self) -> None:
        self.model.eval()
        with torch.no_grad():
            self.loss()
        self.model.train()

    def stays_in_eval(self) -> None:
        self.model.eval()

    def edits(self) -> None:
        self.optimizer.zero_grad()
        self.loss().backward()
        for p in self.model.parameters():
            p.grad.mul_(0.5)
        self.optimizer.step()

    def fails(self) -> None:
        self.optimizer.zero_grad()
        with contextlib.suppress(RuntimeError):
            loss = self.loss()
            loss.backward()
            loss.backward()
        self.optimizer.step()

    def is_nan(self) -> None:
        self.optimizer.zero_grad()
        (self.loss() * torch.tensor(float("nan"))).backward()
        self.optimizer.step()

    def new_optimizer(self) -> None:
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)


KINDS = [name for name in vars(Loop) if not name.startswith("_") and name != "loss"]


def plan(seed: int) -> list[str]:
    """Return the names of updates: long runs of one kind or of two in turn, with others between them."""
    chance, updates = random.Random(seed), list[str]()
    for _ in range(4):
        some = chance.sample(["healthy", "zeroes", "window", "clips", "two_nets"], chance.choice((1, 1, 2)))
        updates += some * chance.choice((90, 150))
        updates += [chance.choice(KINDS) for _ in range(chance.choice((1, 1, 3, 6)))] * chance.choice((1, 2, 4))
    return updates


def told(updates: list[str]) -> tuple[Any, ...]:
    loop = Loop()
    with watch() as report:
        for name in updates:
            getattr(loop, name)()
    weights = [p.detach().clone() for p in loop.model.parameters()]
    return report.text, weights


@pytest.mark.parametrize("seed", every(12, SEEDS))
def test_what_is_said_is_the_same_as_if_all_had_been_written_down(seed, monkeypatch):
    updates, steady = plan(seed), list[int]()
    leave = SteadyLoop.leave

    def leaves(loop: SteadyLoop) -> None:
        steady.append(loop._cycles if loop.on else 0)
        leave(loop)

    monkeypatch.setattr(SteadyLoop, "leave", leaves)
    text, weights = told(updates)
    assert sum(steady) > 10 or "finding" in text.split(".")[0], "it has to have been steady, or there was a finding"
    monkeypatch.setattr(SteadyLoop, "ended", lambda loop: loop.update.clear())
    plain_text, plain_weights = told(updates)
    assert text == plain_text
    torch.testing.assert_close(weights, plain_weights, rtol=0, atol=0, equal_nan=True)


def test_a_pass_that_begins_at_an_edge_of_the_graph_is_never_taken_for_a_repeat_and_breaks_nothing():
    loop = Loop()
    with watch() as report:
        for _ in range(100):
            loop.optimizer.zero_grad()
            torch.autograd.backward([torch.autograd.graph.get_gradient_edge(loop.loss())], [torch.ones(())])
            loop.optimizer.step()
    assert report.judged
    assert "100 backward passes" in report.text


def test_a_mistake_after_a_thousand_good_updates_has_its_numbers() -> None:
    loop = Loop()
    with watch() as report:
        for _ in range(1000):
            loop.healthy()
        for _ in range(3):
            loop.forgets()
    (finding,) = report.findings
    assert finding.code == "missing-zero-grad"
    assert "update 1003" in finding.evidence
    assert "batches 1,000 to 1,002 again" in finding.evidence
    assert "1,003 updates of self.optimizer" in report.watched


def test_two_optimizers_that_take_turns_are_counted_each() -> None:
    loops = Loop(), Loop()
    with watch() as report:
        for _ in range(150):
            for number in (0, 1, 0):
                loops[number].healthy()
    assert report.findings == []
    assert "300 updates" in report.watched
    assert "150 updates" in report.watched


def test_no_gap_is_claimed_where_batches_were_forgotten() -> None:
    loop = Loop()
    with watch() as report:
        for _ in range(140):
            loop.forgets()
    assert "applied batches 1, \u2026, 139 again" in report.findings[0].evidence
