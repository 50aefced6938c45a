# accelerate: prepare() and accumulate(), with clipping where the gradients are in step, and a last short window.
import hashlib

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset


def main():
    set_seed(0)
    x = torch.randn(208, 8)
    data = TensorDataset(x, x[:, :1] * 2 + x[:, 1:2])
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = CosineAnnealingLR(optimizer, T_max=16)
    accelerator = Accelerator(gradient_accumulation_steps=4, cpu=True)
    model, optimizer, loader, scheduler = accelerator.prepare(
        model, optimizer, DataLoader(data, 16, shuffle=True), scheduler
    )
    for epoch in range(4):
        model.train()
        total = 0.0
        for inputs, targets in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(inputs), targets)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            total += loss.item()
        model.eval()
        with torch.no_grad():
            error = nn.functional.l1_loss(model(x), x[:, :1] * 2 + x[:, 1:2])
        print(f"epoch {epoch}: loss {total / len(loader):.3f}, error {error:.3f}")
    weights = b"".join(value.detach().numpy().tobytes() for value in model.parameters())
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
