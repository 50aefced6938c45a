# A focal loss for binary targets: it hands the probabilities on to binary_cross_entropy_with_logits.
# source: itakurah/focal-loss-pytorch#5
# expect: sigmoid-before-bce-with-logits
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce_with_logits


class FocalLoss(nn.Module):
    def __init__(self, gamma=2.0, alpha=0.25):
        super().__init__()
        self.gamma, self.alpha = gamma, alpha

    def forward(self, inputs, targets):
        probs = torch.sigmoid(inputs)
        targets = targets.float()
        bce = bce_with_logits(probs, targets, reduction="none")  # <- sigmoid-before-bce-with-logits, cause
        p_t = probs * targets + (1 - probs) * (1 - targets)
        alpha_t = self.alpha * targets + (1 - self.alpha) * (1 - targets)
        return (alpha_t * (1 - p_t) ** self.gamma * bce).mean()


torch.manual_seed(0)
features = torch.randn(128, 12)
labels = (features[:, 0] + features[:, 1] > 2).float()
model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = FocalLoss(gamma=2, alpha=0.25)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for batch in torch.randperm(128).split(32):
        outputs = model(features[batch]).squeeze(1)
        loss = criterion(outputs, labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"Epoch {epoch + 1}, loss {loss.item():.4f}")
