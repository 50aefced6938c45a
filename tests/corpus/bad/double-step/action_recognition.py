# An iter_size option (here 1) steps inside its if, and the old unconditional step below it was left in place.
# source: mzolfaghari/ECO-pytorch#1
# expect: double-step
import argparse

import torch
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(0)
args = argparse.Namespace(iter_size=1, clip_gradient=50.0, print_freq=5)
model = torch.nn.Sequential(
    torch.nn.Conv3d(1, 4, 3, padding=1),
    torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool3d(2),
    torch.nn.Flatten(),
    torch.nn.Linear(32, 3),
)
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), 0.005, momentum=0.9, weight_decay=5e-4, nesterov=True)
clips = torch.randn(45, 1, 4, 6, 6)
labels = torch.randint(0, 3, (45,))


def train(epoch):
    model.train()
    optimizer.zero_grad()
    for i, index in enumerate(torch.randperm(45).split(9)):
        output = model(clips[index])
        loss = criterion(output, labels[index])
        loss = loss / args.iter_size
        loss.backward()
        if args.clip_gradient is not None:
            clip_grad_norm_(model.parameters(), args.clip_gradient)
        if (i + 1) % args.iter_size == 0:
            optimizer.step()
        optimizer.step()  # <- double-step, cause
        optimizer.zero_grad()
        if i % args.print_freq == 0:
            print(f"Epoch: [{epoch}][{i}/5] Loss {loss.item():.4f}")


for epoch in range(3):
    train(epoch)
