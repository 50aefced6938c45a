# Two losses on one trunk: the first backward keeps the graph so that the second can go through the trunk again.
# source: discuss.pytorch.org/t/28162 (multi-task learning, jointly backward or backward with retain_graph=True)
import torch
from torch import nn, optim

torch.manual_seed(12)
trunk = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
head_class, head_value = nn.Linear(16, 4), nn.Linear(16, 1)
opt = optim.SGD([*trunk.parameters(), *head_class.parameters(), *head_value.parameters()], lr=0.05, momentum=0.9)

x = torch.randn(256, 10)
y1, y2 = x[:, :4].argmax(1), x.sum(1, keepdim=True)
history = []
for step in range(60):
    rows = torch.randint(0, 256, (64,))
    opt.zero_grad()
    feature = trunk(x[rows])
    loss1 = nn.functional.cross_entropy(head_class(feature), y1[rows])
    loss2 = 0.1 * nn.functional.mse_loss(head_value(feature), y2[rows])
    loss1.backward(retain_graph=True)
    grad_of_first = trunk[0].weight.grad.norm().item()
    loss2.backward()
    opt.step()
    history.append((loss1.item(), loss2.item(), grad_of_first))
    if step % 20 == 19:
        print(step, *(f"{v:.3f}" for v in history[-1]))
