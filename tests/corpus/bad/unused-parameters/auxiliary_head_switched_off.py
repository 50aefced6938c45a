# A segmentation net with an auxiliary head for deep supervision, whose output is only computed if a flag is set.
# source: Tramac/awesome-semantic-segmentation-pytorch core/models/fcn.py, with the flag left off
# expect: unused-parameters
# severity: hint (another run may use it)
# cause: none (the flag may be meant so)
import torch
from torch import nn


class FCN(nn.Module):
    def __init__(self, nclass=2, aux=False):
        super().__init__()
        self.aux = aux
        self.pretrained = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU())
        self.head = nn.Conv2d(6, nclass, 1)
        self.auxlayer = nn.Sequential(nn.Conv2d(6, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, nclass, 1))

    def forward(self, x):
        c4 = self.pretrained(x)
        outputs = [self.head(c4)]
        if self.aux:
            outputs.append(self.auxlayer(c4))
        return outputs


torch.manual_seed(13)
model = FCN()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
images = torch.rand(24, 1, 6, 6)
targets = (images[:, 0] > 0.5).long()
for epoch in range(4):
    for image, target in zip(images.split(6), targets.split(6), strict=True):
        loss = sum(criterion(output, target) for output in model(image))
        optimizer.zero_grad()
        loss.backward()  # <- unused-parameters
        optimizer.step()
    print(epoch, loss.item())
