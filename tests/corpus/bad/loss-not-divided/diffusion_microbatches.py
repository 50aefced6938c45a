# A TrainLoop that splits a batch into micro-batches and adds up their mean losses' gradients.
# source: openai/guided-diffusion#111
# expect: loss-not-divided
# severity: hint (a sum over tasks looks the same, and a smaller lr makes up for it)
import torch
from torch import nn


class TrainLoop:
    def __init__(self, model, data, batch_size, microbatch, lr):
        self.model, self.data = model, data
        self.batch_size, self.microbatch = batch_size, microbatch
        self.opt = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.0)
        self.betas = torch.linspace(1e-4, 0.02, 100)
        self.alphas_cumprod = (1 - self.betas).cumprod(0)

    def training_losses(self, x, t, noise):
        a = self.alphas_cumprod[t].unsqueeze(1)
        x_t = a.sqrt() * x + (1 - a).sqrt() * noise
        inp = torch.cat([x_t, t.unsqueeze(1) / 100], 1)
        return (self.model(inp) - noise).pow(2).mean(1)

    def forward_backward(self, batch):
        for param in self.model.parameters():
            if param.grad is not None:
                param.grad.detach_()
                param.grad.zero_()
        for i in range(0, batch.shape[0], self.microbatch):
            micro = batch[i : i + self.microbatch]
            t = torch.randint(0, 100, (micro.shape[0],))
            losses = self.training_losses(micro, t, torch.randn_like(micro))
            loss = losses.mean()  # <- cause
            loss.backward()  # <- loss-not-divided, cause
        return loss.item()

    def run_loop(self, steps):
        for step in range(steps):
            idx = torch.randint(0, len(self.data), (self.batch_size,))
            loss = self.forward_backward(self.data[idx])
            self.opt.step()
            if step % 5 == 0:
                print("step", step, "loss", round(loss, 4))


torch.manual_seed(1)
net = nn.Sequential(nn.Linear(9, 64), nn.SiLU(), nn.Linear(64, 8))
TrainLoop(net, torch.randn(200, 8), batch_size=24, microbatch=6, lr=1e-3).run_loop(15)
