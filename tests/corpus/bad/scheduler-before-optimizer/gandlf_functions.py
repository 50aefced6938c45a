# A training function and a caller: the exponential decay is applied before the epoch's training, not after it.
# source: mlcommons/GaNDLF#107
# expect: scheduler-before-optimizer
import torch
from torch import nn, optim


def train_network(model, batches, optimizer, params):
    model.train()
    total = 0.0
    for features, label in batches:
        optimizer.zero_grad(set_to_none=False)
        hidden, _ = model["rnn"](features)
        output = model["fc"](hidden[:, -1])
        loss = nn.functional.binary_cross_entropy_with_logits(output.squeeze(1), label)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), params["clip_grad"])
        optimizer.step()
        total += loss.item()
    return total / len(batches)


def training_loop(params):
    model = nn.ModuleDict({"rnn": nn.GRU(4, 10, batch_first=True), "fc": nn.Linear(10, 1)})
    optimizer = optim.RMSprop(model.parameters(), lr=params["learning_rate"])
    scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
    scans = torch.randn(6, 8, 5, 4)
    batches = [(scan, (scan.sum((1, 2)) > 0).float()) for scan in scans]
    epoch = 0
    while epoch < params["num_epochs"]:
        scheduler.step()  # <- scheduler-before-optimizer, cause
        epoch_loss = train_network(model, batches, optimizer, params)
        print(f"Epoch {epoch} loss {epoch_loss:.4f}")
        epoch += 1


torch.manual_seed(3)
training_loop({"learning_rate": 1e-3, "num_epochs": 3, "clip_grad": 0.5})
