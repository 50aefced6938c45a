# The feed-forward chapter of a book: forward, loss, step; the notebook cell has no loss.backward().
# source: darksigma/Fundamentals-of-Deep-Learning-Book#9
# expect: step-without-backward
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)


class BaseClassifier(nn.Module):
    def __init__(self, in_dim, feature_dim, out_dim):
        super().__init__()
        self.classifier = nn.Linear(in_dim, feature_dim, bias=True)
        self.out = nn.Linear(feature_dim, out_dim, bias=True)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.out(self.relu(self.classifier(x)))


train_x = torch.randn(128, 20).double()
train_y = (train_x @ torch.randn(20, 4).double()).argmax(1)
classifier = BaseClassifier(20, 32, 4).double()
optimizer = torch.optim.Adagrad(classifier.parameters(), lr=0.1)

for epoch in range(3):
    for minibatch in torch.randperm(128).split(32):
        data, target = train_x[minibatch], train_y[minibatch]
        optimizer.zero_grad(set_to_none=False)
        out = classifier(data)
        loss = F.cross_entropy(out, target)  # <- cause
        optimizer.step()  # <- step-without-backward, cause
    print(f"Epoch: {epoch} Loss: {loss.item():.6f}")
