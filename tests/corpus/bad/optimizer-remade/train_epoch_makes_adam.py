# Environmental regression: train_epoch() makes its own Adam each time, so the running averages restart every epoch.
# source: alan-turing-institute/deepsensor#47
# expect: optimizer-remade
import torch
from torch import nn, optim


class ConvNP(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv1d(8, 8, 5, padding=2))
        self.head = nn.Conv1d(8, 2, 1)

    def forward(self, context):
        mean, log_std = self.head(torch.relu(self.encoder(context))).chunk(2, dim=1)
        return torch.distributions.Normal(mean, nn.functional.softplus(log_std) + 1e-2)


def train_epoch(model, tasks, lr=5e-3, batch_size=4):
    opt = optim.Adam(model.parameters(), lr=lr)  # <- optimizer-remade, cause
    batch_losses = []
    for start in range(0, len(tasks), batch_size):
        context, target = tasks[start : start + batch_size].unbind(1)
        opt.zero_grad()
        loss = -model(context).log_prob(target).mean()
        loss.backward()
        opt.step()
        batch_losses.append(loss.item())
    return batch_losses


torch.manual_seed(1)
grid = torch.linspace(0, 6.28, 24)
fields = torch.stack([torch.sin(grid * (1 + k % 3) + k) for k in range(32)]).unsqueeze(1)
tasks = torch.stack([fields + 0.3 * torch.randn_like(fields), fields], dim=1)
model = ConvNP()
for epoch in range(5):
    losses = train_epoch(model, tasks[torch.randperm(32)])
    print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")
