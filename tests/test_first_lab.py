"""The way to a lab's first picture loads no more than it needs, and what it leaves out comes as ever when asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

NOT_NEEDED = (
    "torch._dynamo",
    "sympy",
    "networkx",
    "matplotlib.pyplot",
    "matplotlib.backends.backend_svg",
    "matplotlib.backends.backend_pdf",
    "requests",
    "urllib3",
)
FIRST_LAB = f"""
import sys
from gradlab import Lab
lab = Lab()
assert "image/png" in lab._repr_mimebundle_()[0]
lab.run(3)
print(*(name for name in {NOT_NEEDED} if name in sys.modules))
"""
COMPILED = """
import sys
import torch
from torch import nn

delayed = sys.argv[1] == "delayed"
if delayed:
    from gradlab import _torch
    _torch.delay_dynamo()

model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
for weights in model.parameters():
    nn.init.constant_(weights, 0.25)
x = torch.linspace(-1, 1, 8).reshape(4, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

def update():
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()

update()
assert ("torch._dynamo" in sys.modules) != delayed
torch.compile(update, backend="eager")()
from torch._dynamo.utils import counters
print({kind: dict(counted) for kind, counted in counters.items() if kind in ("frames", "stats", "graph_break")})
print(type(optimizer).step.__wrapped__.__code__.co_names)
print(sorted(vars(torch.optim.Optimizer.zero_grad.__wrapped__)))
print([weights.tolist() for weights in model.parameters()])
"""


def printed_by(code: str, *arguments: str) -> str:
    """What a fresh interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_way_to_the_first_picture_loads_neither_a_compiler_nor_pyplot() -> None:
    assert printed_by(FIRST_LAB).split() == []


@pytest.mark.nightly
def test_torch_compile_makes_the_same_graphs_after_updates_without_dynamo() -> None:
    assert printed_by(COMPILED, "delayed") == printed_by(COMPILED, "at once")
