# Training on FGSM examples: one backward only for the input's gradient, model.zero_grad() throws the rest away, and a
# second backward, on the attacked batch, is the one that counts.
# source: pytorch/tutorials beginner_source/fgsm_tutorial.py (the attack), arxiv.org/abs/1412.6572 (training on it)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(16)
EPSILON = 0.1
net = nn.Sequential(nn.Unflatten(1, (1, 8)), nn.Conv1d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
inputs = torch.rand(256, 8)
labels = (inputs[:, :4].sum(1) > inputs[:, 4:].sum(1)).long()


def fgsm_attack(image, epsilon, data_grad):
    return torch.clamp(image + epsilon * data_grad.sign(), 0, 1)


for epoch in range(6):
    total, right = 0.0, 0
    for data, target in zip(inputs.split(32), labels.split(32), strict=True):
        data = data.clone()
        data.requires_grad = True
        loss = F.cross_entropy(net(data), target)
        net.zero_grad()
        loss.backward()
        perturbed = fgsm_attack(data, EPSILON, data.grad.data).detach()
        net.zero_grad()

        output = net(torch.cat([data.detach(), perturbed]))
        loss = F.cross_entropy(output, target.repeat(2))
        loss.backward()
        optimizer.step()
        total += loss.item()
        right += (output.argmax(1) == target.repeat(2)).sum().item()
    print(f"epoch {epoch} loss {total / 8:.4f} accuracy {right / 512:.3f}")
