# A two-headed detector whose train loop sums the losses and steps, without a backward pass.
# source: Goingqs/PyramidBox#7
# expect: step-without-backward
import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(0)


class TinyBox(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.ReLU())
        self.loc = nn.Conv2d(8, 4, 1)
        self.conf = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        h = self.base(x)
        return self.loc(h), self.conf(h)


net = TinyBox()
optimizer = optim.SGD(net.parameters(), lr=1e-3, momentum=0.9, weight_decay=5e-4)
smooth_l1, cross_entropy = nn.SmoothL1Loss(), nn.CrossEntropyLoss()
images = torch.rand(32, 3, 15, 15)
boxes, faces = torch.rand(32, 4, 3, 3), torch.randint(0, 2, (32, 3, 3))

net.train()
batch_size, max_iter = 8, 12
for iteration in range(max_iter):
    idx = torch.randint(0, 32, (batch_size,))
    loc, conf = net(images[idx])
    optimizer.zero_grad()
    loss_l = smooth_l1(loc, boxes[idx])
    loss_c = cross_entropy(conf, faces[idx])
    loss = loss_l + loss_c  # <- cause
    optimizer.step()  # <- step-without-backward, cause
    if iteration % 4 == 0:
        print(f"iter {iteration} || Loss: {loss.item():.4f}")
