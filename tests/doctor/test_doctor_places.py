"""Lines to edit: where a clearing belongs, what counts on its own object alone, and files that change meanwhile."""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from gradlab._frames import user_frame
from gradlab.doctor import Finding, Report, watch
from gradlab.doctor.source.syntax import edited

NETS = """import torch
from torch import nn
torch.manual_seed(0)
generator, critic = nn.Linear(3, 2), nn.Linear(2, 1)
opt_g = torch.optim.Adam(generator.parameters())
opt_d = torch.optim.Adam(critic.parameters())
"""
WRONG_STEP = f"""{NETS}
for i in range(12):  # wgan_div.py, with the wrong optimizer stepped
    opt_d.zero_grad()
    fake = generator(torch.randn(4, 3))
    (critic(fake.detach()) - critic(torch.randn(4, 2))).mean().backward()
    opt_d.step()
    opt_g.zero_grad()
    if i % 2 == 0:
        (-critic(fake).mean()).backward()
        opt_d.step()  # here
"""
WINDOWS = f"""{NETS}
def epoch():
    for i in range(6):
        loss = critic(torch.randn(4, 2)).pow(2).mean() / 2
        loss.backward()
        if i % 2:
            opt_d.step()  # here
for _ in range(2):
    epoch()
"""
IN_A_DICTIONARY = """import torch
critic = torch.nn.Linear(2, 1)
adams = {"critic": torch.optim.Adam(critic.parameters())}
for i in range(6):
    critic(torch.randn(4, 2)).pow(2).mean().backward()  # here
    for opt in adams.values():
        opt.step()
"""
OWN_LOSS = f"""{NETS}
for i in range(6):
    opt_g.zero_grad()
    fake = generator(torch.randn(4, 3))
    (-critic(fake).mean()).backward()
    opt_g.step()
    (critic(fake.detach()) - critic(torch.randn(4, 2))).mean().backward()  # here
    opt_d.step()
"""
VALIDATES = """import torch
from torch import nn
x = torch.randn(32, 6)
net = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
class Clock:
    def train(self): ...
clock = Clock()
for epoch in range(4):
    {}
    for part in x.split(8):
        optimizer.zero_grad()
        net(part).pow(2).mean().backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(net(x).sum())
"""
KEEPS = """import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(24):
    optimizer.zero_grad()
    loss = model(torch.ones(1, 2)).square().sum()
    loss.backward()
    optimizer.step()
    losses.append(loss)  # here
"""


def judged(source: str, path: Path) -> Report:
    path.write_text(source)
    with watch() as report:
        runpy.run_path(str(path), run_name="__main__")
    return report


def missing_zero_grad(source: str, path: Path) -> Finding:
    return next(finding for finding in judged(source, path) if finding.code == "missing-zero-grad")


@pytest.mark.parametrize(
    ("source", "what", "fix"),
    [
        (WRONG_STEP, "", "opt_g.step()"),
        (WINDOWS, "below", "opt_d.zero_grad()"),
        (IN_A_DICTIONARY, "above", "adams['critic'].zero_grad()"),  # `opt` is the variable of a loop further down
        (OWN_LOSS, "above", "opt_d.zero_grad()"),
    ],
)
def test_the_place_and_the_line(source: str, what: str, fix: str, tmp_path: Path) -> None:
    finding = missing_zero_grad(source, tmp_path / "train.py")
    (line,) = (number for number, text in enumerate(source.splitlines(), 1) if text.endswith("# here"))
    assert finding.cause is not None
    assert (finding.cause.line, finding.cause.insert) == (line, what)
    assert finding.fix_is_line
    assert finding.fix == fix
    fixed = edited(finding.cause, fix)
    assert fixed is not None
    with pytest.raises(StopIteration):
        missing_zero_grad(fixed, tmp_path / "mended.py")


def test_without_users_code_the_innermost_library_frame_counts() -> None:
    code = SimpleNamespace(co_filename=pytest.__file__)
    outer = SimpleNamespace(f_code=code, f_back=None)
    inner = SimpleNamespace(f_code=code, f_back=outer)
    frame: Any = inner
    assert user_frame(frame) is frame


def test_a_train_without_brackets_counts_on_the_model_itself(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    (finding,) = judged(VALIDATES.format("clock.train\n    net.train"), path)
    assert (finding.code, finding.fix_is_line, finding.fix) == ("eval-mode-left-on", True, "net.train()")
    assert finding.cause is not None
    fixed = edited(finding.cause, finding.fix)
    assert fixed is not None
    assert judged(fixed, path).codes == []
    (finding,) = judged(VALIDATES.format("clock.train"), path)
    assert finding.cause is not None
    assert (finding.cause.what, finding.fix) == ("insert above line 10", "net.train()")


def test_letters_of_two_bytes_before_the_words_to_change(tmp_path: Path) -> None:
    (finding,) = judged(VALIDATES.format('"größe"; net.train; 1'), tmp_path / "train.py")
    assert finding.fix == '"größe"; net.train(); 1'


def test_a_mistake_after_a_thousand_updates_has_its_numbers() -> None:
    w = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=1e-6)
    with watch() as report:
        for update in range(1003):
            if update < 1000:
                optimizer.zero_grad()
            w.sum().backward()
            optimizer.step()
    (finding,) = report.findings
    assert finding.code == "missing-zero-grad"
    assert "update 1003" in finding.evidence
    assert "batches 1,000 to 1,002 again" in finding.evidence
    assert "1,003 updates of optimizer" in report.watched


def test_no_gap_is_claimed_where_batches_were_forgotten() -> None:
    w = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=1e-6)
    with watch() as report:
        for _ in range(140):
            w.sum().backward()
            optimizer.step()
    assert "applied batches 1, \u2026, 139 again" in report.findings[0].evidence


def test_a_file_that_was_edited_between_two_watches(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    for number, text in enumerate((KEEPS, "# one\n# two\n# three\n" + KEEPS, KEEPS)):
        path.write_text(text)
        os.utime(path, (number, number))  # a clock that is too coarse hides no edit
        with watch() as report:
            runpy.run_path(str(path), run_name="__main__")
        (line,) = (index for index, code in enumerate(text.splitlines(), 1) if code.endswith("# here"))
        assert [(each.code, each.line) for each in report] == [("graph-retained-memory-leak", line)], report.text
