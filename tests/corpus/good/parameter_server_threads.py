# A parameter server and three trainer threads: each trainer's backward fills its own copy, the gradients are added into
# the server's, divided by their number and stepped by the server's optimizer.
# source: pytorch/examples distributed/rpc/batch/parameter_server.py
import copy
import threading

import torch
from torch import nn, optim

TRAINERS, NUM_BATCHES = 3, 12


class BatchUpdateParameterServer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.lock = threading.Lock()
        self.curr_update_size = 0
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def push(self, grads):
        with self.lock:
            for p, g in zip(self.model.parameters(), grads, strict=True):
                p.grad += g
            self.curr_update_size += 1

    def update(self):
        for p in self.model.parameters():
            p.grad /= self.curr_update_size
        self.curr_update_size = 0
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=False)


def trainer(rank, server, barrier, losses):
    generator = torch.Generator().manual_seed(rank)
    model = copy.deepcopy(server.model)
    for _ in range(NUM_BATCHES):
        model.load_state_dict(server.model.state_dict())
        model.zero_grad()
        x = torch.randn(20, 4, generator=generator)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        losses[rank].append(loss.item())
        server.push([p.grad for p in model.parameters()])
        if barrier.wait() == 0:
            server.update()
        barrier.wait()


if __name__ == "__main__":
    torch.manual_seed(93)
    ps = BatchUpdateParameterServer()
    log, meet = [[] for _ in range(TRAINERS)], threading.Barrier(TRAINERS)
    threads = [threading.Thread(target=trainer, args=(r, ps, meet, log)) for r in range(TRAINERS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print([round(series[0], 3) for series in log], [round(series[-1], 3) for series in log])
