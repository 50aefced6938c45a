# ignite: a supervised trainer with accumulation, an evaluator after each epoch, and a schedule.
import hashlib

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import PiecewiseLinear
from ignite.metrics import Accuracy, Loss
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    x = torch.randn(256, 6)
    data = TensorDataset(x, x[:, :3].argmax(1))
    model = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    trainer = create_supervised_trainer(model, optimizer, criterion, gradient_accumulation_steps=2)
    evaluator = create_supervised_evaluator(model, {"accuracy": Accuracy(), "loss": Loss(criterion)})
    schedule = PiecewiseLinear(optimizer, "lr", [(0, 0.0), (8, 0.1), (40, 0.01)])
    trainer.add_event_handler(Events.ITERATION_STARTED, schedule)

    @trainer.on(Events.EPOCH_COMPLETED)
    def evaluate(engine):
        evaluator.run(DataLoader(data, 64))
        print(f"epoch {engine.state.epoch}: {evaluator.state.metrics['accuracy']:.2f}")

    trainer.run(DataLoader(data, 32, shuffle=True), max_epochs=5)
    weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
