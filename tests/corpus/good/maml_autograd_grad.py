# MAML: the inner updates make new tensors by torch.autograd.grad and functional layers; only the outer loss, summed
# over tasks, meets backward.
# source: dragen1860/MAML-Pytorch meta.py, arxiv.org/abs/1703.03400
import torch
from torch import nn, optim
from torch.nn import functional as F


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.vars = nn.ParameterList(
            [nn.Parameter(torch.randn(*s) * 0.3) for s in ((24, 1), (24,), (24, 24), (24,), (1, 24), (1,))]
        )

    def forward(self, x, vars=None):
        v = self.vars if vars is None else vars
        x = torch.tanh(F.linear(x, v[0], v[1]))
        x = torch.tanh(F.linear(x, v[2], v[3]))
        return F.linear(x, v[4], v[5])


class Meta(nn.Module):
    def __init__(self, update_lr=0.05, update_step=2):
        super().__init__()
        self.update_lr, self.update_step = update_lr, update_step
        self.net = Learner()
        self.meta_optim = optim.Adam(self.net.parameters(), lr=5e-3)

    def forward(self, tasks):
        losses_q = []
        for x_spt, y_spt, x_qry, y_qry in tasks:
            fast = list(self.net.parameters())
            for _ in range(self.update_step):
                loss = F.mse_loss(self.net(x_spt, fast), y_spt)
                grad = torch.autograd.grad(loss, fast, create_graph=True)
                fast = [w - self.update_lr * g for g, w in zip(grad, fast, strict=True)]
            losses_q.append(F.mse_loss(self.net(x_qry, fast), y_qry))
        loss_q = sum(losses_q) / len(tasks)
        self.meta_optim.zero_grad()
        loss_q.backward()
        self.meta_optim.step()
        return loss_q.item()


def sine_task():
    amplitude, phase = torch.rand(1) * 2 + 0.5, torch.rand(1) * 3.14
    x = torch.rand(20, 1) * 6 - 3
    y = amplitude * torch.sin(x + phase)
    return x[:10], y[:10], x[10:], y[10:]


torch.manual_seed(27)
maml = Meta()
history = [maml([sine_task() for _ in range(4)]) for _ in range(60)]
print(sum(history[:10]) / 10, sum(history[-10:]) / 10)
