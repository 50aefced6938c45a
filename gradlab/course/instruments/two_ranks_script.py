"""The script that both processes run: it runs every loop of ``loops.json`` under DDP, and records each update.

This plain PyTorch script is copied to a temporary folder and launched there. The loops are not changed: a hook on the
weights reads the gradients, DDP's communication hook counts the bytes sent, and all else is read when a loop asks for
its next window or micro-batch. The record of each update is a dictionary:

    cleared    .grad before the first micro-batch, or None if it was cleared
    micros     a dictionary for each micro-batch: "own", the gradient of this rank's samples; "before", .grad with
               "own" added, before any all-reduce; "after", .grad at the end of backward(); "sent", the bytes that this
               rank sent in each all-reduce of this backward pass
    weights    the weights after the step
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel


class Watched:
    """A training loop, and the record that this rank keeps of its updates."""

    def __init__(self, loop: dict[str, Any], inputs: torch.Tensor, targets: torch.Tensor) -> None:
        """Create a model with two weights of 0. ``inputs`` and ``targets`` are micro-batches x samples x numbers."""
        self.loop, self.inputs, self.targets, self.rank = loop, inputs, targets, dist.get_rank()
        self.updates: list[dict[str, Any]] = []
        self.own_grad: list[float] = []
        self.sent: list[tuple[int, list[float]]] = []
        self.model = torch.nn.Linear(2, 1, bias=False)
        torch.nn.init.zeros_(self.model.weight)
        self.model.weight.register_hook(lambda gradient: setattr(self, "own_grad", gradient.flatten().tolist()))

    def grad(self) -> list[float] | None:
        """Return the model's ``.grad`` as a list of two floats, or None if ``.grad`` is None."""
        grad = self.model.weight.grad
        return None if grad is None else grad.flatten().tolist()

    def reduce(self, bucket: Any) -> Any:
        """Record a bucket's size and values, and return a future of its mean over the ranks, as DDP's own hook does."""
        buffer = bucket.buffer()
        self.sent.append((buffer.nbytes, buffer.tolist()))
        work: Any = dist.all_reduce(buffer.div_(2), async_op=True)
        return work.get_future().then(lambda done: done.value()[0])

    def wrap(self, model: torch.nn.Module) -> DistributedDataParallel:
        """Return ``model`` wrapped in DDP, which calls ``reduce`` for every all-reduce."""
        ddp = DistributedDataParallel(model)
        ddp.register_comm_hook(None, lambda state, bucket: self.reduce(bucket))
        return ddp

    def windows(self) -> Iterator[Iterator[tuple[torch.Tensor, torch.Tensor]]]:
        """Yield one iterator of micro-batches for each update, and record the weights after each update."""
        for update in range(self.loop["updates"]):
            micros: list[dict[str, Any]] = []
            self.updates.append({"micros": micros})
            yield self.window(update, micros)
            self.updates[-1]["weights"] = self.model.weight.flatten().tolist()

    def window(self, update: int, micros: list[dict[str, Any]]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield this rank's share of each micro-batch; record ``.grad`` before the first and after each micro-batch."""
        self.updates[-1]["cleared"] = self.grad()
        count, half = self.loop["accumulate"], self.inputs.shape[1] // 2
        mine = slice(self.rank * half, (self.rank + 1) * half)
        for micro in range(update * count, (update + 1) * count):
            self.sent.clear()
            index = micro % len(self.inputs)
            yield self.inputs[index, mine], self.targets[index, mine]
            after = self.grad()
            before = self.sent[0][1] if self.sent else after
            sent = [size for size, _ in self.sent]
            micros.append({"own": self.own_grad, "before": before, "after": after, "sent": sent})

    def run(self) -> list[dict[str, Any]]:
        """Run the source of the loop unchanged, and return the records of its updates."""
        names = {"torch": torch, "mse_loss": mse_loss, "nullcontext": nullcontext, "rank": self.rank}
        exec(self.loop["source"], {**names, "DDP": self.wrap, "model": self.model, "windows": self.windows()})
        return self.updates


if __name__ == "__main__":
    dist.init_process_group("gloo")
    task = json.loads(Path("loops.json").read_text(encoding="utf-8"))
    inputs, targets = torch.tensor(task["inputs"]), torch.tensor(task["targets"])
    recorded = [Watched(loop, inputs, targets).run() for loop in task["loops"]]
    Path(f"seen-{dist.get_rank()}.json").write_text(json.dumps(recorded), encoding="utf-8")
    dist.destroy_process_group()
