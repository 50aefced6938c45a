# The call to update() hangs on a condition that is only true at log steps, so the step after that one raises.
# source: HorizonRobotics/alf#1770
# expect: scaler-step-without-update
# raises: RuntimeError
import torch
from torch import nn, optim
from torch.distributions import Normal

torch.manual_seed(4)


class Algorithm:
    def __init__(self, summary_interval=3):
        self.actor = nn.Sequential(nn.Linear(5, 24), nn.Tanh(), nn.Linear(24, 2))
        self.optimizer = optim.Adam(self.actor.parameters(), lr=1e-3)
        self.grad_scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
        self.summary_interval, self.counter = summary_interval, 0

    def update_with_gradient(self, loss):
        self.optimizer.zero_grad()
        self.grad_scaler.scale(loss).backward()
        self.grad_scaler.step(self.optimizer)  # <- scaler-step-without-update
        if self.counter % self.summary_interval == 0:  # <- cause
            self.grad_scaler.update()  # <- cause
            print("scale", self.grad_scaler.get_scale(), "loss", loss.item())
        self.counter += 1

    def train_iter(self):
        obs = torch.randn(16, 5)
        with torch.autocast("cpu", dtype=torch.float16):
            mean = self.actor(obs)
        dist = Normal(mean.float(), 0.3)
        action = dist.sample()
        reward = -(action - obs[:, :2]).pow(2).sum(1)
        self.update_with_gradient(-(dist.log_prob(action).sum(1) * (reward - reward.mean())).mean())


algorithm = Algorithm()
for _ in range(12):
    algorithm.train_iter()
