# Segmentation's polynomial schedule: it is advanced after every iteration, and reaches zero with the very last one.
# source: docs.pytorch.org/docs/stable/generated/torch.optim.lr_scheduler.PolynomialLR.html, hustvl/YOLOS#19
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(204)
images = torch.rand(48, 3, 8, 8)
masks = (images.sum(1) > 1.5).long()
loader = DataLoader(TensorDataset(images, masks), batch_size=6, shuffle=True)
net = nn.Sequential(nn.Conv2d(3, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.Conv2d(12, 2, 1))
epochs = 5
max_iter = epochs * len(loader)
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=max_iter, power=0.9)
iteration = 0
while iteration < max_iter:
    for image, mask in loader:
        loss = nn.functional.cross_entropy(net(image), mask)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        scheduler.step()
        iteration += 1
        if iteration % 10 == 0:
            print(iteration, loss.item(), scheduler.get_last_lr()[0])
