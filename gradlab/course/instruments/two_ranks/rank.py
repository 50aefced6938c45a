"""What each of the two processes runs: every loop of ``loops.json`` under DDP, and what it saw of each.

A script in plain PyTorch; ``measure.py`` copies it into a folder of its own and launches it. It changes nothing of a
loop: the gradients come from a hook on the weights, bytes and messages from DDP's communication hook, and the rest is
read where the loop asks for its next window or micro-batch.
"""

import json
from contextlib import nullcontext
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
given = json.loads(Path("loops.json").read_text())
inputs, targets = torch.tensor(given["inputs"]), torch.tensor(given["targets"])  # micro-batches x samples x ...


class Watched:
    """One loop and what this rank sees of it."""

    def __init__(self, loop):
        """Prepare the model: two weights, which start at 0."""
        self.loop, self.updates, self.own, self.sent = loop, [], [], []
        self.model = torch.nn.Linear(2, 1, bias=False)
        torch.nn.init.zeros_(self.model.weight)
        self.model.weight.register_hook(lambda gradient: self.own.append(gradient.flatten().tolist()))

    def grad(self):
        """Return what ``.grad`` holds, None where there is none."""
        grad = self.model.weight.grad
        return None if grad is None else grad.flatten().tolist()

    def reduce(self, state, bucket):
        """All-reduce a bucket as DDP does by itself: the mean over the ranks; and note what is sent."""
        buffer = bucket.buffer()
        self.sent.append({"bytes": buffer.nbytes, "before": buffer.tolist()})
        return dist.all_reduce(buffer.div_(2), async_op=True).get_future().then(lambda done: done.value()[0])

    def wrap(self, model):
        """Return DDP of the model, whose all-reduces are counted."""
        ddp = DistributedDataParallel(model)
        ddp.register_comm_hook(None, self.reduce)
        return ddp

    def windows(self):
        """Yield the windows, and note the weights after each."""
        for update in range(self.loop["updates"]):
            self.updates.append({"micros": []})
            yield self.window(update)
            self.updates[-1]["weights"] = self.model.weight.flatten().tolist()

    def window(self, update):
        """Yield this rank's share of each micro-batch, and note ``.grad`` before the first and after each."""
        self.updates[-1]["cleared"] = self.grad()
        first = self.loop["split"][0]
        mine = slice(0, first) if rank == 0 else slice(first, None)
        for micro in range(update * self.loop["accumulate"], (update + 1) * self.loop["accumulate"]):
            self.sent.clear()
            yield inputs[micro, mine], targets[micro, mine]
            after = self.grad()
            self.updates[-1]["micros"].append(
                {
                    "own": self.own[-1],
                    "before": self.sent[0]["before"] if self.sent else after,
                    "after": after,
                    "sent": [message["bytes"] for message in self.sent],
                }
            )

    def run(self):
        """Run the loop's text as it stands."""
        names = {"torch": torch, "mse_loss": mse_loss, "nullcontext": nullcontext, "rank": rank}
        names |= {"DDP": self.wrap, "model": self.model, "windows": self.windows()}
        exec(self.loop["source"], names)
        return self.updates


seen = [Watched(loop).run() for loop in given["loops"]]
Path(f"seen-{rank}.json").write_text(json.dumps(seen))
dist.destroy_process_group()
