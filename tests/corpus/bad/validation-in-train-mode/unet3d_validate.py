# A 3D network with dropout before its final layer; validate() runs every few iterations without switching the mode.
# source: wolny/pytorch-3dunet#53
# expect: validation-in-train-mode
import torch
from torch import nn
from torch.optim import Adam


class UNetTrainer:
    def __init__(self, validate_after_iters=4, max_num_iterations=16):
        self.model = nn.Sequential(
            nn.Conv3d(1, 6, 3, padding=1), nn.GroupNorm(2, 6), nn.ReLU(), nn.Dropout(0.3), nn.Conv3d(6, 1, 1)
        )
        self.optimizer = Adam(self.model.parameters(), lr=2e-3, weight_decay=1e-5)
        self.loss_criterion = nn.BCEWithLogitsLoss()
        self.validate_after_iters, self.max_num_iterations = validate_after_iters, max_num_iterations
        volume = torch.rand(20, 1, 4, 4, 4)
        target = (volume > 0.5).float()
        self.loaders = {"train": (volume[:16], target[:16]), "val": (volume[16:], target[16:])}

    def fit(self):
        self.model.train()
        for iteration in range(1, self.max_num_iterations + 1):
            pick = torch.randint(0, 16, (4,))
            volume, target = (t[pick] for t in self.loaders["train"])
            _, loss = self._forward_pass(volume, target)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if iteration % self.validate_after_iters == 0:
                print(f"iteration {iteration} loss {loss.item():.4f} val score {self.validate():.4f}")  # <- cause

    @torch.no_grad()
    def validate(self):
        volume, target = self.loaders["val"]  # <- cause
        output = self.model(volume)  # <- validation-in-train-mode, cause
        return ((output > 0).float() == target).float().mean().item()

    def _forward_pass(self, volume, target):
        output = self.model(volume)
        return output, self.loss_criterion(output, target)


torch.manual_seed(3)
UNetTrainer().fit()
