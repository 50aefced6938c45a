# A classifier that keeps the projection head of its pretraining in the model, and in the optimizer, without using it.
# source: facebookresearch/simsiam main_lincls.py, with the head left in
# expect: unused-parameters
# severity: hint (a part may wait for another phase)
# cause: none (nothing in the source says what the part is for)
import torch
from torch import nn


class SimSiam(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, dim), nn.ReLU())
        self.projector = nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.fc = nn.Linear(dim, 3)

    def forward(self, x):
        return self.fc(self.encoder(x))


torch.manual_seed(12)
model = SimSiam()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
images = torch.randn(60, 6)
target = images[:, :3].argmax(1)
for epoch in range(3):
    for i in torch.randperm(60).split(12):
        loss = nn.functional.cross_entropy(model(images[i]), target[i])
        optimizer.zero_grad()
        loss.backward()  # <- unused-parameters
        optimizer.step()
    print(epoch, loss.item())
