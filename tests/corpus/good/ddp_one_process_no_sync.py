# DistributedDataParallel in a world of one process (gloo), with accumulation under no_sync().
# source: pytorch/tutorials intermediate_source/ddp_tutorial.rst
# and docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html (no_sync)
import contextlib
import tempfile

import torch
import torch.distributed as dist
import torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP  # noqa: N817


class ToyModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.net1, self.net2 = nn.Linear(10, 10), nn.Linear(10, 5)

    def forward(self, x):
        return self.net2(torch.relu(self.net1(x)))


def demo_basic(rank, world_size, steps=16, accumulate=2):
    ddp_model = DDP(ToyModel())
    optimizer = torch.optim.SGD(ddp_model.parameters(), lr=0.05)
    for step in range(steps):
        optimizer.zero_grad()
        for micro in range(accumulate):
            last = micro + 1 == accumulate
            with contextlib.nullcontext() if last else ddp_model.no_sync():
                inputs = torch.randn(20, 10)
                loss = nn.functional.mse_loss(ddp_model(inputs), inputs[:, :5].abs()) / accumulate
                loss.backward()
        optimizer.step()
        if step % 5 == 0:
            print(rank, step, loss.item() * accumulate)


if __name__ == "__main__":
    torch.manual_seed(98)
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        demo_basic(0, 1)
        dist.destroy_process_group()
