"""What notebook 11 says of DDP and FSDP without a cell that shows it; what its cells show, nbval compares."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from rank_scripts import script

from gradlab.course.processes import launch

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")]
NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "11_many_devices.ipynb"
PARTS = """
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel as DDP

def build():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(7, 6), nn.Tanh(), nn.Linear(6, 4))
def sharded():
    return fully_shard(build(), mesh=init_device_mesh("cpu", (size,)))
def backward(model, i, whole=False, over=4):  # a micro-batch of 8, of which each rank takes every second sample
    x = torch.randn(8, 7, generator=torch.Generator().manual_seed(i))
    (model(x if whole else x[rank::size]).square().mean() / over).backward()
def flat(tensors):
    return torch.cat([(t.full_tensor() if isinstance(t, DTensor) else t).flatten() for t in tensors]).detach()
def grad(model):
    return flat([p.grad for p in model.parameters()])
def same(a, b):
    return torch.allclose(a, b, atol=1e-6)
"""
BYTES = 4 * (7 * 6 + 6 + 6 * 4 + 4)


def ranks(folder: Path, text: str) -> None:
    """Run the assertions of a script in two processes."""
    path = script(folder, "")
    path.write_text(path.read_text() + PARTS + text)
    run = launch(path, seconds=60)
    assert run, run


def written(name: str) -> str:
    """Return what the notebook writes to a file, from all its cells."""
    found = []
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        first, *lines = "".join(cell["source"]).splitlines() or [""]
        if first.startswith("%%writefile") and first.split()[-1] == name:
            found += lines
    assert found, name
    return "\n".join(found) + "\n"


def test_a_window_that_fsdp_never_synchronizes_moves_nothing(tmp_path: Path) -> None:
    text = f"""
model = sharded()
model.set_requires_gradient_sync(False)
optimizer, before = torch.optim.SGD(model.parameters(), lr=0.5), flat(model.parameters())
backward(model, 0)
optimizer.step()
assert torch.equal(before, flat(model.parameters()))
model.unshard()
assert sum(p.grad.nbytes for p in model.parameters()) == {BYTES}
alone = build()
backward(alone, 0)
assert same(torch.cat([p.grad.flatten() for p in model.parameters()]), grad(alone)), "this rank's own"
model.reshard()
"""
    ranks(tmp_path, text)


def test_what_ddp_does_beyond_the_mean(tmp_path: Path) -> None:
    text = """
ddp = DDP(build())
with ddp.no_sync(): backward(ddp, 0)
both = [torch.zeros(()) for _ in range(size)]
dist.all_gather(both, grad(ddp).norm())
assert not same(both[0], both[1]), "within a window each rank has another norm"

class Spare(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.spare = nn.Linear(7, 4), nn.Linear(7, 4)
    def forward(self, x):
        return self.used(x) + self.spare(x) if rank == 1 else self.used(x)
model = DDP(Spare(), find_unused_parameters=True)
for i in range(2): backward(model, i)
assert model.module.spare.weight.grad is not None, "one rank used it"

model = DDP(nn.Sequential(nn.Linear(7, 4), nn.BatchNorm1d(4)))
model.module[1].running_mean.fill_(float(rank))
model.module[1].momentum = 0.0
with CommDebugMode() as seen: model(torch.randn(8, 7))
assert {str(op): n for op, n in seen.get_comm_counts().items() if n} == {"c10d.broadcast_": 2}, seen.get_comm_counts()
assert model.module[1].running_mean.abs().max() == 0, "the buffers of rank 0, before the forward pass"
"""
    ranks(tmp_path, text)


def test_the_average_waits_for_a_rank_without_a_gradient(tmp_path: Path) -> None:
    (tmp_path / "averaging.py").write_text(written("averaging.py"))
    text = """
from averaging import average_gradients
model, one = build(), build()
backward(one, 0)
expected = grad(one) if rank == 1 else torch.zeros_like(flat(one.parameters()))
dist.all_reduce(expected)
if rank == 1: backward(model, 0)
average_gradients(model)
assert same(grad(model), expected / 2)
"""
    ranks(tmp_path, text)
