# A scikit-learn-like wrapper: train_step and validation_step share infer(), and the latter builds a graph for nothing.
# source: skorch-dev/skorch#218
# expect: validation-builds-graph
# severity: hint (it costs memory and time; the numbers are right)
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class NeuralNet:
    def __init__(self, module, criterion=nn.NLLLoss, lr=0.05, max_epochs=3, batch_size=20):
        self.module_ = module
        self.criterion_ = criterion()
        self.optimizer_ = torch.optim.SGD(module.parameters(), lr=lr)
        self.max_epochs, self.batch_size = max_epochs, batch_size

    def get_loss(self, y_pred, y_true):
        return self.criterion_(torch.log(y_pred), y_true)

    def validation_step(self, xi, yi):  # <- cause
        self.module_.eval()
        y_pred = self.module_(xi)  # <- validation-builds-graph, cause
        return self.get_loss(y_pred, yi)  # <- cause

    def train_step(self, xi, yi):
        self.module_.train()
        self.optimizer_.zero_grad()
        loss = self.get_loss(self.module_(xi), yi)
        loss.backward()
        self.optimizer_.step()
        return loss

    def fit(self, x, y):
        split = int(len(x) * 0.8)
        train = DataLoader(TensorDataset(x[:split], y[:split]), batch_size=self.batch_size, shuffle=True)
        valid = DataLoader(TensorDataset(x[split:], y[split:]), batch_size=self.batch_size)
        for epoch in range(self.max_epochs):
            train_loss = [self.train_step(xi, yi).item() for xi, yi in train]
            valid_loss = [self.validation_step(xi, yi).item() for xi, yi in valid]  # <- cause
            print(epoch, sum(train_loss) / len(train_loss), sum(valid_loss) / len(valid_loss))
        return self


torch.manual_seed(0)
X = torch.randn(150, 8)
module = nn.Sequential(nn.Linear(8, 10), nn.ReLU(), nn.Dropout(0.3), nn.Linear(10, 2), nn.Softmax(dim=-1))
NeuralNet(module).fit(X, (X[:, 0] > 0).long())
