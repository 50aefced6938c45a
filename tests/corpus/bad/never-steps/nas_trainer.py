# A classification trainer that computes the loss and its gradients but does not use the optimizer for anything else.
# source: microsoft/nni#3339
# expect: never-steps
import torch
from torch.nn import BatchNorm1d, Linear, ReLU, Sequential
from torch.nn.functional import cross_entropy


class ClassificationTrainer:
    def __init__(self, model, dataset, batch_size=16):
        self.model = model
        self._dataset = dataset
        self._optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
        self._batch_size = batch_size

    def _loader(self):
        x, y = self._dataset
        for idx in torch.randperm(len(x)).split(self._batch_size):
            yield x[idx], y[idx]

    def training_step(self, batch):
        x, y = batch
        self._optimizer.zero_grad(set_to_none=False)
        loss = cross_entropy(self.model(x), y)
        loss.backward()  # <- never-steps, cause
        return loss

    def accuracy(self):
        self.model.eval()
        x, y = self._dataset
        with torch.no_grad():
            acc = (self.model(x).argmax(1) == y).float().mean().item()
        self.model.train()
        return acc

    def fit(self, max_epochs=4):
        for epoch in range(max_epochs):
            for batch in self._loader():
                self.training_step(batch)
            print("Epoch", epoch, "accuracy", self.accuracy())


torch.manual_seed(3)
inputs = torch.randn(80, 6)
net = Sequential(Linear(6, 20), BatchNorm1d(20), ReLU(), Linear(20, 3))
ClassificationTrainer(net, (inputs, inputs[:, :3].argmax(1))).fit()
