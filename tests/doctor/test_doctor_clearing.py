"""Where a clearing belongs: above its pass, below the step, or nowhere, as another optimizer is meant."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from gradlab.doctor import Finding, watch
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
NO_NAME = """import torch
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


def missing_zero_grad(source: str, path: Path) -> Finding:
    path.write_text(source)
    with watch() as report:
        runpy.run_path(str(path), run_name="__main__")
    return next(one for one in report if one.code == "missing-zero-grad")


@pytest.mark.parametrize(
    ("source", "what", "fix"),
    [
        (WRONG_STEP, "", "opt_g.step()"),
        (WINDOWS, "below", "opt_d.zero_grad()"),
        (NO_NAME, "above", ""),  # `opt` is the variable of a loop further down
        (OWN_LOSS, "above", "opt_d.zero_grad()"),
    ],
)
def test_the_place_and_the_line(source: str, what: str, fix: str, tmp_path: Path) -> None:
    finding = missing_zero_grad(source, tmp_path / "train.py")
    (line,) = (at for at, one in enumerate(source.splitlines(), 1) if one.endswith("# here"))
    assert finding.cause is not None
    assert (finding.cause.line, finding.cause.insert) == (line, what)
    assert finding.fix_is_line == bool(fix)
    if fix:
        assert finding.fix == fix
        mended = edited(finding.cause, fix)
        assert mended is not None
        with pytest.raises(StopIteration):
            missing_zero_grad(mended, tmp_path / "mended.py")
