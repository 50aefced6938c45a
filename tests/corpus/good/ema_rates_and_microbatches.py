# A diffusion trainer: microbatches of unequal size weighted by hand, several averaged copies of the weights as plain
# lists, and the learning rate annealed by writing into param_groups.
# source: openai/guided-diffusion guided_diffusion/train_util.py
import copy

import torch as th
import torch.nn as nn
from torch.optim import AdamW

th.manual_seed(53)


class TrainLoop:
    def __init__(self, model, batch_size, microbatch, lr, ema_rate=(0.9, 0.99)):
        self.model, self.batch_size, self.microbatch, self.lr = model, batch_size, microbatch, lr
        self.ema_rate = ema_rate
        self.master_params = list(model.parameters())
        self.opt = AdamW(self.master_params, lr=lr, weight_decay=0.0)
        self.ema_params = [copy.deepcopy(self.master_params) for _ in ema_rate]
        self.step, self.anneal = 0, 40
        self.sqrt_abar = th.cumprod(1 - th.linspace(1e-2, 0.3, 10), 0).sqrt()

    def run_loop(self):
        while self.step < self.anneal:
            loss = self.run_step(th.randn(self.batch_size, 2) * 0.1 + th.tensor([2.0, -2.0]))
            if self.step % 10 == 0:
                print(self.step, f"{loss:.4f}")
            self.step += 1

    def run_step(self, batch):
        self.model.zero_grad(set_to_none=False)
        total = 0.0
        for i in range(0, batch.shape[0], self.microbatch):
            micro = batch[i : i + self.microbatch]
            t = th.randint(0, 10, (len(micro),))
            noise = th.randn_like(micro)
            a = self.sqrt_abar[t].unsqueeze(1)
            noisy = a * micro + (1 - a**2).sqrt() * noise
            losses = (self.model(th.cat([noisy, a], 1)) - noise).pow(2).mean(1)
            loss = losses.sum() / batch.shape[0]
            loss.backward()
            total += loss.item()
        self.opt.step()
        for rate, params in zip(self.ema_rate, self.ema_params, strict=True):
            for targ, src in zip(params, self.master_params, strict=True):
                targ.detach().mul_(rate).add_(src, alpha=1 - rate)
        for group in self.opt.param_groups:
            group["lr"] = self.lr * (1 - self.step / self.anneal)
        return total


TrainLoop(nn.Sequential(nn.Linear(3, 32), nn.SiLU(), nn.Linear(32, 2)), 40, 16, 1e-2).run_loop()
