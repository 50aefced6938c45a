# DARTS: the architecture has its own optimizer and its own loss (validation data), the weights theirs (training data);
# each loss fills the gradients of both sides, and each side clears only what it is about to use.
# source: quark0/darts cnn/train_search.py and cnn/architect.py
import torch
import torch.nn as nn
import torch.nn.functional as F


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.ops = nn.ModuleList([nn.Linear(6, 6), nn.Sequential(nn.Linear(6, 6), nn.Tanh()), nn.Identity()])
        self.head = nn.Linear(6, 1)
        self._arch_parameters = [(1e-3 * torch.randn(3)).requires_grad_()]

    def arch_parameters(self):
        return self._arch_parameters

    def forward(self, x):
        weights = F.softmax(self._arch_parameters[0], dim=-1)
        return self.head(sum(w * op(x) for w, op in zip(weights, self.ops, strict=True)))


class Architect:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.Adam(model.arch_parameters(), lr=3e-2, betas=(0.5, 0.999), weight_decay=1e-3)

    def step(self, input_valid, target_valid):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(input_valid), target_valid)
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(29)
model = Network()
architect = Architect(model)
optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=3e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4, eta_min=0.001)
rule = torch.randn(6, 6)
x = torch.randn(256, 6)
y = torch.tanh(x @ rule[:, :1])

for epoch in range(4):
    model.train()
    for b in range(8):
        train = slice(b * 16, b * 16 + 16)
        search = slice(128 + b * 16, 144 + b * 16)
        valid_loss = architect.step(x[search], y[search])
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[train]), y[train])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    scheduler.step()
    print(epoch, f"{loss.item():.4f} {valid_loss:.4f}", F.softmax(model.arch_parameters()[0].detach(), 0).tolist())
