"""What notebook 11 says of DDP and FSDP beyond the mean, on two real processes and against one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from rank_scripts import script

from gradlab.course.processes import launch

pytestmark = pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")
NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "11_many_devices.ipynb"
PARTS = """
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard
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
def counts(model, i):
    with CommDebugMode() as seen:
        backward(model, i)
    return {str(op).split(".")[-1].strip("_"): times for op, times in seen.get_comm_counts().items() if times}
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


def test_fsdp_trains_as_one_process_does_with_its_grad_in_shards(tmp_path: Path) -> None:
    text = f"""
for make in (lambda p: torch.optim.SGD(p, lr=0.3), lambda p: torch.optim.Adam(p, lr=0.01)):
    model, one = sharded(), build()
    optimizers = make(model.parameters()), make(one.parameters())
    for i in range(10):
        for optimizer in optimizers: optimizer.zero_grad()
        assert all(p.grad is None for p in model.parameters())
        backward(model, i)
        backward(one, i, whole=True)
        assert same(grad(model), grad(one))
        for optimizer in optimizers: optimizer.step()
    assert same(flat(model.parameters()), flat(one.parameters()))
state = optimizers[0].state[model[0].weight]["exp_avg"]
assert tuple(state.to_local().shape) == (3, 7), "Adam's state is divided, too"
for p in model.parameters():
    assert isinstance(p.grad, DTensor) and p.grad.placements == (Shard(0),)
assert sum(p.grad.to_local().nbytes for p in model.parameters()) == {BYTES} / 2
rows = one[0].weight.grad.chunk(size)[rank]
assert same(model[0].weight.grad.to_local(), rows)
assert counts(model, 0) == {{"allgather_base": 1, "reduce_scatter_base": 1}}
"""
    ranks(tmp_path, text)


def test_a_window_under_fsdp_lies_where_zero_grad_does_not_reach(tmp_path: Path) -> None:
    text = f"""
model, one, ddp = sharded(), build(), DDP(build())
for i in range(4): backward(one, i, whole=True)
whole = grad(one)
assert [counts(model, i).get("reduce_scatter_base", 0) for i in range(4)] == [1, 1, 1, 1]
assert same(grad(model), whole)
for clear in (False, True):
    model.zero_grad()
    ddp.zero_grad()
    model.set_requires_gradient_sync(False)
    for i in range(3):
        assert counts(model, i) == {{"allgather_base": 1}}
        assert all(p.grad is None for p in model.parameters())
        with ddp.no_sync(): backward(ddp, i)
    if clear:
        model.zero_grad()
        ddp.zero_grad()
    model.set_requires_gradient_sync(True)
    backward(model, 3)
    backward(ddp, 3)
    assert same(grad(model), whole)
    assert same(grad(ddp), whole) == (not clear)
one.zero_grad()
backward(one, 3, whole=True)
assert same(grad(ddp), grad(one)), "under no_sync() the same call cleared three of four"

model.zero_grad()
model.set_requires_gradient_sync(False)
optimizer, before = torch.optim.SGD(model.parameters(), lr=0.5), flat(model.parameters())
backward(model, 0)
optimizer.step()
assert torch.equal(before, flat(model.parameters())), "a window that is never synchronized moves nothing"
model.unshard()
assert sum(p.grad.nbytes for p in model.parameters()) == {BYTES}, "the hidden sum is whole"
alone = build()
backward(alone, 0)
assert same(torch.cat([p.grad.flatten() for p in model.parameters()]), grad(alone)), "and this rank's own"
model.reshard()
"""
    ranks(tmp_path, text)


def test_clipping_needs_the_norm_over_all_shards(tmp_path: Path) -> None:
    text = """
model, one, ddp = sharded(), build(), DDP(build())
backward(model, 0)
backward(one, 0, whole=True)
backward(ddp, 0)
whole = grad(one).norm()
rows = torch.cat([p.grad.to_local().flatten() for p in model.parameters()]).norm()
assert rows < 0.99 * whole
squares = rows.square()
dist.all_reduce(squares)
assert same(squares.sqrt(), whole)
norms = [nn.utils.clip_grad_norm_(each.parameters(), max_norm=whole.item() / 3) for each in (model, one, ddp)]
assert same(norms[0].full_tensor(), whole) and same(norms[1], whole) and same(norms[2], whole)
assert same(grad(model), grad(one)) and same(grad(ddp), grad(one))
ddp.zero_grad()
with ddp.no_sync(): backward(ddp, 0)
both = [torch.zeros(()) for _ in range(size)]
dist.all_gather(both, grad(ddp).norm())
assert not same(both[0], both[1]), "within a window each rank has another norm"
"""
    ranks(tmp_path, text)


def test_what_ddp_does_beyond_the_mean(tmp_path: Path) -> None:
    text = """
model = DDP(build(), gradient_as_bucket_view=True)
for i in range(2):
    model.zero_grad()
    backward(model, i)
assert len({p.grad.untyped_storage().data_ptr() for p in model.parameters()}) == 1
kept = model.module[0].weight.grad
model.zero_grad()
assert all(p.grad is None for p in model.parameters())
backward(model, 2)
assert kept.data_ptr() == model.module[0].weight.grad.data_ptr()

class Spare(nn.Module):
    def __init__(self, both):
        super().__init__()
        self.used, self.spare, self.both = nn.Linear(7, 4), nn.Linear(7, 4), both
    def forward(self, x):
        return self.used(x) + self.spare(x) if self.both else self.used(x)
model = DDP(Spare(False))
backward(model, 0)
try:
    backward(model, 1)
    raise AssertionError("no error in the second update")
except RuntimeError as error:
    assert "Expected to have finished reduction in the prior iteration" in str(error)
for both, none in ((False, True), (rank == 1, False)):  # used by no rank, and by rank 1 only
    model = DDP(Spare(both), find_unused_parameters=True)
    for i in range(2): backward(model, i)
    assert (model.module.spare.weight.grad is None) == none

model = DDP(nn.Sequential(nn.Linear(7, 4), nn.BatchNorm1d(4)))
model.module[1].running_mean.fill_(float(rank))
model.module[1].momentum = 0.0
with CommDebugMode() as seen: model(torch.randn(8, 7))
assert {str(op): n for op, n in seen.get_comm_counts().items() if n} == {"c10d.broadcast_": 2}, seen.get_comm_counts()
assert model.module[1].running_mean.abs().max() == 0, "the buffers of rank 0, before the forward pass"
"""
    ranks(tmp_path, text)


def test_the_average_of_the_notebook_waits_for_a_rank_without_a_gradient(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("name", ["shards.py", "fsdp.py", "window.py", "clip.py", "views.py", "unused.py"])
def test_the_files_that_a_learner_reads_are_short(name: str) -> None:
    cells: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    for cell in cells:
        first, *lines = "".join(cell["source"]).splitlines() or [""]
        if first.startswith("%%writefile") and first.split()[-1] == name:
            assert sum(bool(line.strip()) for line in lines) <= 12


def test_an_error_of_a_file_follows_what_it_has_printed(tmp_path: Path) -> None:
    """So a PyTorch that lacks what a file imports is told in a sentence, also where one rank's lines are shown."""
    run = launch(script(tmp_path, "print('begun')\nfrom torch.distributed.fsdp import not_there"))
    assert run.lines(0)[0] == "begun"
    assert "failed: ImportError: cannot import name 'not_there'" in " ".join(run.lines(0))
    assert "Traceback" not in repr(run)
