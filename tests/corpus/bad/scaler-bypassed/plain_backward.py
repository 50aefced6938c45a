# The scaler is used for step and update, but the loss is backpropagated without scale(); the first step raises.
# source: NVIDIA/apex#377
# expect: scaler-bypassed
# raises: AssertionError
import torch
from torch import nn
from torch.amp import GradScaler

torch.manual_seed(3)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(9, 20), nn.ReLU(), nn.Linear(20, 2))

    def forward(self, patches):
        return self.net(patches)


def main(epochs=2):
    model = Segmenter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scaler = GradScaler("cpu")
    patches = torch.rand(80, 9)
    labels = (patches.mean(1) > 0.5).long()
    for epoch in range(epochs):
        for i in range(0, 80, 10):
            with torch.autocast("cpu", dtype=torch.float16):
                pred = model(patches[i : i + 10])
                loss = nn.functional.cross_entropy(pred.float(), labels[i : i + 10])
            optimizer.zero_grad()
            loss.backward()  # <- scaler-bypassed, cause
            scaler.step(optimizer)
            scaler.update()
        print(epoch, loss.item())


main()
