# skorch: a classifier in scikit-learn's way; every step runs with a closure.
import hashlib

import numpy
import torch
from skorch import NeuralNetClassifier
from skorch.callbacks import EpochScoring, GradientNormClipping, LRScheduler
from skorch.dataset import ValidSplit
from torch import nn


class Module(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 3))

    def forward(self, x):
        return self.layers(x)


def main():
    torch.manual_seed(0)
    numpy.random.seed(0)
    x = numpy.random.randn(300, 6).astype("float32")
    y = x[:, :3].argmax(1)
    net = NeuralNetClassifier(
        Module,
        criterion=nn.CrossEntropyLoss,
        optimizer=torch.optim.Adam,
        lr=0.01,
        max_epochs=5,
        batch_size=32,
        train_split=ValidSplit(5),
        iterator_train__shuffle=True,
        callbacks=[
            GradientNormClipping(1.0),
            LRScheduler(policy="StepLR", step_size=2, gamma=0.5),
            EpochScoring("accuracy", on_train=True, name="train_accuracy", lower_is_better=False),
        ],
        verbose=0,
    )
    net.fit(x, y)
    print(f"{net.score(x, y):.2f}")
    weights = b"".join(value.numpy().tobytes() for value in net.module_.state_dict().values())
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
