# Video frames in iter_size micro-batches: clip(clip(g1) + g2) instead of clip(g1 + g2).
# source: swathikirans/GSM#22
# expect: clip-inside-accumulation
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(1)
iter_size, clip_gradient = 2, 0.3
model = nn.Sequential(
    nn.Conv1d(6, 12, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool1d(1), nn.Flatten(), nn.Linear(12, 5)
)
criterion = nn.CrossEntropyLoss(reduction="sum")
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
clips = torch.randn(96, 6, 8)
target = clips.mean(2)[:, :5].argmax(1)


def train_epoch(epoch, batch_size=6):
    order = torch.randperm(len(clips))
    seen, correct = 0, 0
    optimizer.zero_grad()
    for i, pick in enumerate(order.split(batch_size)):
        output = model(clips[pick])
        loss = criterion(output, target[pick]) / (batch_size * iter_size)
        loss.backward()
        total_norm = clip_grad_norm_(model.parameters(), clip_gradient)  # <- clip-inside-accumulation, cause
        if (i + 1) % iter_size == 0:
            optimizer.step()
            optimizer.zero_grad()
        correct += (output.argmax(1) == target[pick]).sum().item()
        seen += len(pick)
    print(f"epoch {epoch} acc {correct / seen:.3f} last norm {total_norm.item():.3f}")


for epoch in range(3):
    train_epoch(epoch)
