# An iterative refinement loop: backward in every inner iteration, then zero_grad and step in the wrong order.
# source: yuval-alaluf/hyperstyle#40
# expect: zero-grad-between-backward-and-step
import torch
from torch import nn

torch.manual_seed(4)


class Coach:
    def __init__(self, n_iters_per_batch=3):
        self.n_iters_per_batch = n_iters_per_batch
        self.net = nn.Sequential(nn.Linear(20, 32), nn.GELU(), nn.Linear(32, 10))
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)

    def calc_loss(self, x, y_hat):
        return (y_hat - x).abs().mean() + 0.1 * (y_hat - x).pow(2).mean()

    def train(self, batches):
        self.net.train()
        for global_step, x in enumerate(batches):
            y_hat = torch.zeros_like(x)
            for _ in range(self.n_iters_per_batch):
                delta = self.net(torch.cat([x, y_hat.detach()], dim=1))
                y_hat = y_hat.detach() + delta
                loss = self.calc_loss(x, y_hat) / self.n_iters_per_batch
                loss.backward()
            self.optimizer.zero_grad()  # <- zero-grad-between-backward-and-step, cause
            self.optimizer.step()
            if global_step % 5 == 0:
                print(global_step, round(loss.item(), 4))


Coach().train(torch.randn(15, 8, 10))
