"""A mistake that comes late in a long loop is found like an early one, with its numbers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from gradlab.doctor import watch


class Loop:
    """A small training, call by call."""

    def __init__(self) -> None:
        self.model: nn.Module = nn.Linear(3, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-5)

    def backward(self) -> None:
        self.model(torch.ones(2, 3)).sum().backward()

    def step(self) -> None:
        self.optimizer.step()

    def clear(self) -> None:
        self.optimizer.zero_grad()


def test_a_mistake_after_a_thousand_updates_has_its_numbers():
    loop = Loop()
    with watch() as report:
        for _ in range(1000):
            loop.clear()
            loop.backward()
            loop.step()
        for _ in range(3):
            loop.backward()
            loop.step()
    (finding,) = report.findings
    assert finding.code == "missing-zero-grad"
    assert "update 1003" in finding.evidence
    assert "batches 1,000 to 1,002 again" in finding.evidence
    assert "1,003 updates of self.optimizer" in report.watched


def clips_late(loop: Loop) -> None:
    loop.clear()
    loop.backward()
    loop.step()
    nn.utils.clip_grad_norm_(loop.model.parameters(), 1.0)


def stays_in_eval(loop: Loop) -> None:
    loop.model.eval()
    loop.clear()
    loop.backward()
    loop.step()


@pytest.mark.parametrize("mistake", [clips_late, stays_in_eval])
def test_a_late_mistake_is_found_like_an_early_one(mistake):
    def train(loop: Loop, good: int) -> None:
        torch.manual_seed(0)
        loop.model = nn.Sequential(nn.Linear(3, 2), nn.Dropout(0.5), nn.Linear(2, 1))
        loop.optimizer = torch.optim.SGD(loop.model.parameters(), lr=1e-5)
        for _ in range(good):
            loop.clear()
            loop.backward()
            loop.step()
        for _ in range(6):
            mistake(loop)

    bare, loop = Loop(), Loop()
    with watch() as early:
        train(Loop(), 4)
    with watch() as late:
        train(loop, 120)
    train(bare, 120)
    places = [[(one.code, one.severity, one.file, one.line) for one in report.findings] for report in (early, late)]
    assert places[0] == places[1] != []
    torch.testing.assert_close(loop.model.state_dict(), bare.model.state_dict(), rtol=0, atol=0, equal_nan=True)


def test_no_gap_is_claimed_where_batches_were_forgotten() -> None:
    w = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=1e-6)
    with watch() as report:
        for _ in range(140):
            w.sum().backward()
            optimizer.step()
    assert "applied batches 1, \u2026, 139 again" in report.findings[0].evidence
