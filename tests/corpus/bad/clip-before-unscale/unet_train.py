# A U-Net-like segmentation script in which clip_grad_norm_ comes between scale().backward() and scaler.step().
# source: milesial/Pytorch-UNet#468
# expect: clip-before-unscale
import torch
import torch.nn as nn
from torch import optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)


def train_model(model, train_loader, amp=True, epochs=2, learning_rate=1e-3, gradient_clipping=1.0):
    optimizer = optim.RMSprop(model.parameters(), lr=learning_rate, weight_decay=1e-8, momentum=0.9, foreach=True)
    grad_scaler = torch.amp.GradScaler("cpu", enabled=amp, init_scale=1024.0)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(1, epochs + 1):
        model.train()
        epoch_loss = 0
        for images, true_masks in train_loader:
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
                masks_pred = model(images)
                loss = criterion(masks_pred.squeeze(1).float(), true_masks)

            optimizer.zero_grad(set_to_none=True)
            grad_scaler.scale(loss).backward()  # <- cause
            torch.nn.utils.clip_grad_norm_(model.parameters(), gradient_clipping)  # <- clip-before-unscale, cause
            grad_scaler.step(optimizer)
            grad_scaler.update()
            epoch_loss += loss.item()
        print(f"Epoch {epoch}/{epochs} loss {epoch_loss / len(train_loader):.4f}")


images = torch.rand(48, 1, 8, 8)
loader = DataLoader(TensorDataset(images, (images[:, 0] > 0.6).float()), batch_size=8, shuffle=True)
train_model(nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 1, 1)), loader)
