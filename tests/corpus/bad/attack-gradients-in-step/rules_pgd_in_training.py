# Training on PGD examples: zero_grad() comes before the attack, whose passes fill the weights' gradients as well.
# source: https://github.com/BorealisAI/advertorch/issues/113, https://github.com/P2333/Bag-of-Tricks-for-AT/issues/8
# expect: attack-gradients-in-step
import torch
from torch import nn

torch.manual_seed(10)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def pgd(x, y, epsilon=0.1, steps=3):
    adversarial = x.clone()
    for _ in range(steps):
        adversarial = adversarial.detach().requires_grad_(True)
        loss = nn.functional.cross_entropy(model(adversarial), y)
        loss.backward()
        adversarial = adversarial + 0.05 * adversarial.grad.sign()
        adversarial = torch.max(torch.min(adversarial, x + epsilon), x - epsilon)
    return adversarial.detach()


for _ in range(15):
    x = torch.randn(24, 6)
    y = (x[:, 0] > 0).long()
    optimizer.zero_grad()
    attacked = pgd(x, y)  # <- cause
    loss = nn.functional.cross_entropy(model(attacked), y)
    loss.backward()  # <- cause
    optimizer.step()  # <- attack-gradients-in-step
print(loss.item())
