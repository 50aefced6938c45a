# A lip-sync trainer means to freeze the backbone, but its freezing loop matches the head that the optimizer holds.
# source: AaronComo/LipFD#18
# expect: optimizer-params-frozen
# raises: RuntimeError
import torch
from torch import nn


class LipModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 5, kernel_size=5, stride=5)
        self.encoder = nn.Linear(5 * 4, 24)
        self.backbone_fc = nn.Linear(24, 1)

    def forward(self, x):
        with torch.no_grad():
            feats = self.encoder(self.conv1(x).flatten(1))
        return self.backbone_fc(torch.relu(feats)).squeeze(1)


class Trainer:
    def __init__(self, lr=2e-3):
        self.model = LipModel()
        params = []
        for name, p in self.model.named_parameters():
            if name.split(".")[0] in {"backbone_fc"}:  # <- cause
                p.requires_grad = False  # <- cause
                params.append(p)
        self.optimizer = torch.optim.AdamW(params, lr=lr, betas=(0.9, 0.999))  # <- optimizer-params-frozen
        self.criterion = nn.BCEWithLogitsLoss()
        self.total_steps = 0

    def optimize_parameters(self, frames, label):
        self.loss = self.criterion(self.model(frames), label)
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()
        self.total_steps += 1


torch.manual_seed(3)
trainer = Trainer()
frames = torch.rand(48, 3, 10, 10)
for chunk in torch.arange(48).split(6):
    trainer.optimize_parameters(frames[chunk], frames[chunk].mean((1, 2, 3)).gt(0.5).float())
    print(trainer.total_steps, trainer.loss.item())
