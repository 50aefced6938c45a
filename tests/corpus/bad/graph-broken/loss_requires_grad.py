# A metric-learning loop where the loss is built from argmax and made to require a gradient so that backward runs.
# source: ronghuaiyang/arcface-pytorch#56
# expect: graph-broken
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
faces = torch.randn(80, 12)
labels = faces[:, :5].argmax(1)
trainloader = DataLoader(TensorDataset(faces, labels), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(12, 32), nn.PReLU(), nn.Linear(32, 5))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=5e-4)

for i in range(3):
    model.train()
    for ii, (data_input, label) in enumerate(trainloader):
        feature = model(data_input)
        output = torch.argmax(feature, dim=1).float()  # <- cause
        loss = criterion(output, label.float())  # <- cause
        loss.requires_grad = True  # <- cause
        optimizer.zero_grad()
        loss.backward()  # <- graph-broken
        optimizer.step()
        if ii == 0:
            acc = (output == label).float().mean().item()
            print(f"train epoch {i} iter {ii} loss {loss.item():.4f} acc {acc:.3f}")
