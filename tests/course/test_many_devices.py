"""Statements of notebook 11 on DDP and FSDP without a cell that shows them; nbval compares the cells."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rank_scripts import script

from gradlab.course.processes import launch

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name != "posix", reason="starts processes as Linux and macOS do")]
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


def test_no_sync_around_backward_alone_comes_too_late(tmp_path: Path) -> None:
    text = """
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
sent = []
def count(state, bucket):
    sent.append(bucket)
    return allreduce_hook(None, bucket)
ddp = DDP(build())
ddp.register_comm_hook(None, count)
x = torch.randn(8, 7)
loss = ddp(x).square().mean()
with ddp.no_sync(): loss.backward()
assert len(sent) == 1, "DDP decides in the forward pass"
with ddp.no_sync(): ddp(x).square().mean().backward()
assert len(sent) == 1
"""
    ranks(tmp_path, text)


def test_ddp_begins_with_the_weights_of_rank_0(tmp_path: Path) -> None:
    text = """
torch.manual_seed(rank)
ddp = DDP(nn.Linear(7, 4))
weights = [torch.empty_like(ddp.module.weight.data) for _ in range(size)]
for step in range(40):
    ddp.zero_grad()
    backward(ddp, step)
    with torch.no_grad():
        for p in ddp.parameters(): p -= 0.5 * p.grad
dist.all_gather(weights, ddp.module.weight.data)
assert torch.equal(*weights)
"""
    ranks(tmp_path, text)


def test_a_block_is_gathered_for_each_pass_and_the_root_once(tmp_path: Path) -> None:
    text = """
def collectives(model):
    with CommDebugMode() as seen: backward(model, 0)
    counts = {str(op): n for op, n in seen.get_comm_counts().items()}
    return [sum(n for op, n in counts.items() if word in op) for word in ("allgather", "reduce_scatter")]
assert collectives(sharded()) == [1, 1]
model, mesh = build(), init_device_mesh("cpu", (size,))
for block in (model[0], model[2]): fully_shard(block, mesh=mesh)
assert collectives(fully_shard(model, mesh=mesh)) == [4, 2]
"""
    ranks(tmp_path, text)


def test_clipping_under_fsdp_uses_the_norm_of_the_whole_gradient(tmp_path: Path) -> None:
    text = """
model, whole = sharded(), build()
backward(model, 0)
backward(whole, 0, whole=True)
rows = torch.cat([p.grad.to_local().flatten() for p in model.parameters()]).norm()
norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.01)
one = nn.utils.clip_grad_norm_(whole.parameters(), max_norm=0.01)
assert same(norm.full_tensor(), one) and not same(rows, one)
assert same(grad(model), grad(whole))
"""
    ranks(tmp_path, text)


def test_ddp_and_compile_in_either_order(tmp_path: Path) -> None:
    text = """
inner, plain = build(), DDP(build())
names = list(inner.state_dict())
inner.compile(backend="eager")
assert list(inner.state_dict()) == names
models = [plain, DDP(inner), torch.compile(DDP(build()), backend="eager")]
for model in models: backward(model, 0)
assert same(grad(models[0]), grad(models[1])) and same(grad(models[0]), grad(models[2]))
"""
    ranks(tmp_path, text)


def test_one_rank_that_forgets_is_momentum_one_half_for_long(tmp_path: Path) -> None:
    text = """
def train(model, forgets=False, momentum=0.0, whole=False):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=momentum)
    for step in range(500):
        if not forgets: optimizer.zero_grad()
        backward(model, step % 40, whole=whole, over=1)
        optimizer.step()
    return flat(model.parameters())
both = train(DDP(build()), forgets=rank == 1)
assert torch.allclose(both, train(build(), momentum=0.5, whole=True), atol=1e-5)
assert not torch.allclose(both, train(build(), whole=True), atol=1e-5)
"""
    ranks(tmp_path, text)
