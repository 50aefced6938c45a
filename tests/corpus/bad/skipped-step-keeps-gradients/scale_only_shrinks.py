# Half precision: zero_grad() hangs on the scale not having shrunk, so after one overflow the inf stays for good.
# source: PaddlePaddle/Paddle#67895
# expect: skipped-step-keeps-gradients
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, net, lr=0.05):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=1)
        self.updates = 0

    def fit_batch(self, x, y):
        with torch.autocast("cpu", dtype=torch.float16):
            pred = self.net(x).squeeze(1)
        loss = nn.functional.mse_loss(pred.float(), y)
        self.scaler.scale(loss).backward()
        scale_before = self.scaler.get_scale()
        self.scaler.step(self.opt)  # <- skipped-step-keeps-gradients, cause
        self.scaler.update()
        stepped = self.scaler.get_scale() >= scale_before
        if stepped:  # <- cause
            self.opt.zero_grad()  # <- cause
            self.updates += 1
        return loss.item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            losses = [self.fit_batch(x, y) for x, y in loader]
            print(f"epoch {epoch} loss {sum(losses) / len(losses):.4f} updates {self.updates}")


torch.manual_seed(3)
x = torch.randn(80, 6)
y = 3 * x[:, 0] - x[:, 1] * x[:, 2]
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
Trainer(net).fit(DataLoader(TensorDataset(x, y), batch_size=10, shuffle=True), epochs=3)
