"""Modes and kept graphs: the place to edit, and what is left alone."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from gradlab.doctor import watch
from gradlab.doctor.finding import Report
from gradlab.doctor.source.syntax import edited

LOOP = """\
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(32, 6), torch.randn(32, 2)
net = nn.Sequential(nn.Linear(6, 8), {layer}, nn.Linear(8, 2))
optimizer = torch.optim.SGD(net{part}.parameters(), lr=0.01)
{before}
for epoch in range(4):
    {first}
    for start in range(0, 32, 8):
        optimizer.zero_grad()
        loss = (net(x[start : start + 8]) - y[start : start + 8]).pow(2).mean()
        loss.backward()
        optimizer.step()
    {last}
"""
VALIDATION = "net.eval()\n    with torch.no_grad():\n        print(net(x).sum())"


def loop(layer: str = "nn.Dropout(0.5)", part: str = "", before: str = "", first: str = "", last: str = "") -> str:
    return LOOP.format(layer=layer, part=part, before=before, first=first or "pass", last=last or "pass")


def judged(source: str, folder: Path) -> Report:
    path = folder / "train.py"
    path.write_text(source)
    with watch() as report:
        runpy.run_path(str(path), run_name="__main__")
    return report


def test_a_train_without_brackets_counts_on_the_model_itself(tmp_path: Path) -> None:
    other = "class Clock:\n    def train(self): ...\nclock = Clock()"
    (finding,) = judged(loop(before=other, first="clock.train; net.train\n", last=VALIDATION), tmp_path)
    assert (finding.code, finding.severity) == ("eval-mode-left-on", "error")
    (finding,) = judged(loop(before=other, first="clock.train\n    net.train", last=VALIDATION), tmp_path)
    assert finding.fix_is_line
    assert finding.fix == "net.train()"
    mended = edited(finding.cause, finding.fix)
    assert judged(mended, tmp_path).codes == []
    (finding,) = judged(loop(before=other, first="clock.train", last=VALIDATION), tmp_path)
    assert (finding.cause.what, finding.fix) == ("insert above line 11", "net.train()")


@pytest.mark.parametrize(
    ("source", "severities"),
    [
        (loop(before="net.eval()\nprint(net(x.detach()).sum().item())"), ["warning"]),
        (loop(before="net.eval()"), ["warning"]),
        (loop(layer="nn.BatchNorm1d(8)", before="net.eval()"), ["hint"]),  # a trained model keeps its statistics
        (loop(layer="nn.BatchNorm1d(8)", first="net.train(); net[1].eval()"), []),  # frozen on purpose
        (loop(part="[2]", before="net.eval()"), []),  # a part is trained
        (loop(before="net.train(False)"), []),  # in other words: not by mistake
        (loop(layer="nn.Tanh()", before="net.eval()"), []),
    ],
)
def test_evaluation_mode_is_a_warning_if_it_cannot_be_meant(source, severities, tmp_path: Path) -> None:
    report = judged(source, tmp_path)
    assert [one.severity for one in report if one.code == "eval-mode-left-on"] == severities


def test_no_grad_goes_above_what_validates_alone(tmp_path: Path) -> None:
    shared = "def infer(part):\n    return net(part)"
    validation = "net.eval()\n    for part in x.split(4):\n        print(infer(part).sum().item())\n    net.train()"
    source = loop(layer="nn.Tanh()", before=shared, last=validation)
    both = source.replace("(net(x[start", "(infer(x[start")
    (finding,) = judged(both, tmp_path)
    assert both.splitlines()[finding.cause.line - 1].strip() == "for part in x.split(4):"
    assert (finding.cause.insert, finding.fix_is_line) == ("above", False)
    (finding,) = judged(source, tmp_path)
    assert (finding.code, finding.cause.what, finding.fix) == (
        "validation-builds-graph",
        "insert above line 7",
        "@torch.no_grad()",
    )
