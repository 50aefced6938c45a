# Continual learning: the list of layers to freeze is applied the wrong way round, so the new head is the frozen part.
# source: wannabeOG/MAS-PyTorch#1
# expect: optimizer-params-frozen
# raises: RuntimeError
import torch
import torch.nn as nn
import torch.optim as optim

torch.manual_seed(4)


class SharedModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 16), nn.ReLU())
        self.classifier = nn.Linear(16, 4)

    def forward(self, x):
        with torch.no_grad():
            h = self.features(x)
        return self.classifier(h)


def create_freeze_layers(model, no_of_layers=2):
    return [name for name, _ in model.named_parameters() if name.startswith("features")][: 2 * no_of_layers]


def init_requires_grad(model, freeze_layers):
    for name, param in model.named_parameters():
        if name in freeze_layers:  # <- cause
            param.requires_grad = True
        else:
            param.requires_grad = False  # <- cause
    return model


def train_task(model, x, y, epochs=3, batch_size=16):
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.classifier.parameters(), lr=0.05, momentum=0.9)  # <- optimizer-params-frozen
    for epoch in range(epochs):
        running_corrects = 0
        for idx in torch.randperm(len(x)).split(batch_size):
            output = model(x[idx])
            loss = criterion(output, y[idx])
            model.zero_grad()
            loss.backward()
            optimizer.step()
            running_corrects += (output.argmax(1) == y[idx]).sum().item()
        print(f"epoch {epoch} loss {loss.item():.4f} accuracy {running_corrects / len(x):.3f}")


model = SharedModel()
model = init_requires_grad(model, create_freeze_layers(model))
samples = torch.randn(64, 12)
train_task(model, samples, samples[:, :4].argmax(1))
