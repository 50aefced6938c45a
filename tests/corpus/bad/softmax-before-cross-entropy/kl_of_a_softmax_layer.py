# A student that ends in a softmax layer is compared with its teacher by F.kl_div, in a step function.
# source: none (a common mistake, written small)
# expect: softmax-before-cross-entropy
# cause: not found (the softmax is a layer)
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
teacher = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 3), nn.Softmax(dim=1)).eval()
student = nn.Sequential(
    nn.Linear(5, 3),
    nn.Softmax(dim=1),  # <- cause
)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)


def step(x):
    with torch.no_grad():
        target = teacher(x)
    loss = F.kl_div(student(x), target, reduction="batchmean")  # <- softmax-before-cross-entropy
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


print([round(step(x), 3) for x in torch.randn(30, 16, 5)][::6])
