"""Names as Python spells them, calls that count only on the right object, and a loop that moves copies by hand."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from gradlab.doctor import watch
from gradlab.doctor.source.cuts import cut_before


@pytest.mark.parametrize(
    ("line", "fix"),
    [
        ("out = model(x).detach() * 2", "out = model(x) * 2"),
        ("out = model(x).data", "out = model(x)"),
        ("out = torch.tensor(model(x), requires_grad=True)", "out = model(x)"),
        ("out = model(x).argmax(1)", ""),
        ("out = torch.tensor(model(x).item())", ""),  # two cuts
    ],
)
def test_a_cut_is_taken_out_if_a_word_does_it(line: str, fix: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(f"{line}\nloss = (out - y).square().mean()\nloss.backward()\n")
    edit = cut_before([(str(path), 3)])
    assert edit.line == fix if fix else edit.line == 1


def test_parameters_are_spelled_as_python_has_them() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Tanh(), nn.Linear(4, 1)))
    optimizer = torch.optim.SGD(net[0].parameters(), lr=0.1)
    with watch() as report:
        for _ in range(6):
            optimizer.zero_grad()
            net(torch.ones(2, 3)).mean().backward()
            optimizer.step()
    (finding,) = report
    assert finding.evidence.endswith("net[1][1].weight, net[1][1].bias")


def test_copies_that_the_loop_moves_by_hand_are_not_called_stale() -> None:
    torch.manual_seed(0)
    net = nn.Linear(3, 1)
    meta = torch.optim.SGD(net.parameters(), lr=0.1)
    with watch() as report:
        for _ in range(12):
            fast = copy.deepcopy(net)
            for _ in range(2):
                fast.zero_grad()
                fast(torch.randn(4, 3)).square().mean().backward()
                for p in fast.parameters():
                    p.data -= 0.1 * p.grad
            meta.zero_grad()
            fast(torch.randn(4, 3)).square().mean().backward()
            meta.step()
    assert not {"optimizer-holds-stale-params", "params-missing-from-optimizer"} & set(report.codes), report.text


def test_the_steps_of_a_long_loop_are_all_counted() -> None:
    body, head = nn.Linear(3, 4).requires_grad_(False), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([{"params": body.parameters()}, {"params": head.parameters()}], lr=0.01)
    with watch() as report:
        for _ in range(300):
            optimizer.zero_grad()
            head(body(torch.randn(5, 3))).square().mean().backward()
            optimizer.step()
    (finding,) = report
    assert (finding.code, finding.severity) == ("optimizer-params-frozen", "hint")
    assert finding.evidence.startswith("300 steps of ")
