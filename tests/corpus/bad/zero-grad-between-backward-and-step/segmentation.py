# A segmentation network trained in float64 where the fresh gradients are set to zero just before the update.
# source: sacmehta/EdgeNets#14
# expect: zero-grad-between-backward-and-step
import torch
import torch.nn as nn

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)

model = nn.Sequential(
    nn.Conv2d(1, 6, 3, padding=1),
    nn.BatchNorm2d(6),
    nn.PReLU(),
    nn.Conv2d(6, 2, 1),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=4e-5)
images = torch.randn(40, 1, 8, 8)
masks = (images[:, 0] > 0).long()


def train_seg(model, images, masks, batch_size=8):
    model.train()
    total = 0.0
    for i in range(0, len(images), batch_size):
        inputs, target = images[i : i + batch_size], masks[i : i + batch_size]
        outputs = model(inputs)
        loss = criterion(outputs, target)

        loss.backward()
        optimizer.zero_grad(set_to_none=False)  # <- zero-grad-between-backward-and-step, cause
        optimizer.step()
        total += loss.item()
    return total / (len(images) // batch_size)


for epoch in range(4):
    print(f"epoch {epoch} loss {train_seg(model, images, masks):.4f}")
