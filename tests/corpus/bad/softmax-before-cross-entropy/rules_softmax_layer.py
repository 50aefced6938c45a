# A classifier whose last layer is Softmax, trained with CrossEntropyLoss, which applies log_softmax itself.
# source: https://discuss.pytorch.org/t/do-i-need-to-use-softmax-before-nn-crossentropyloss/16739
# expect: softmax-before-cross-entropy
import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(96, 8), torch.randint(0, 4, (96,))
model = nn.Sequential(
    nn.Linear(8, 16),
    nn.ReLU(),
    nn.Linear(16, 4),
    nn.Softmax(dim=1),  # <- cause
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    for start in range(0, 96, 16):
        optimizer.zero_grad()
        probabilities = model(x[start : start + 16])
        loss = criterion(probabilities, y[start : start + 16])  # <- softmax-before-cross-entropy
        loss.backward()
        optimizer.step()
