# A node-prediction trainer with an optional max_norm that is applied behind optimizer.step().
# source: awslabs/graphstorm#1366
# expect: clip-without-effect
import torch as th
from torch import nn


class NodePredictionTrainer:
    def __init__(self, model, lr=0.05):
        self.model = model
        self.optimizer = th.optim.Adagrad(model.parameters(), lr=lr)

    def fit(self, loader, num_epochs, max_norm=None):
        model = self.model
        for epoch in range(num_epochs):
            model.train()
            for i, (feats, lbl) in enumerate(loader):
                loss = nn.functional.cross_entropy(model(feats), lbl)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                if max_norm is not None:
                    th.nn.utils.clip_grad_norm_(model.parameters(), max_norm)  # <- clip-without-effect, cause
                if i % 4 == 0:
                    print(f"Epoch {epoch:05d} | Batch {i:03d} | Train Loss: {loss.item():.4f}")


th.manual_seed(1)
feats = th.randn(64, 10)
labels = feats[:, :4].argmax(1)
net = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 4))
loader = th.utils.data.DataLoader(th.utils.data.TensorDataset(feats, labels), batch_size=8)
NodePredictionTrainer(net).fit(loader, num_epochs=2, max_norm=0.3)
