# OneCycleLR sized in optimizer updates but advanced per micro-batch: it runs out of steps and raises half-way.
# source: A4Bio/PiFold#6
# expect: scheduler-cadence
# raises: ValueError
import torch
from torch import nn, optim
from torch.optim.lr_scheduler import OneCycleLR

torch.manual_seed(2)
epochs, micro_batches, accum = 4, 12, 2
model = nn.Sequential(nn.Embedding(22, 16), nn.ReLU(), nn.Linear(16, 22))
optimizer = optim.Adam(model.parameters(), lr=1e-3)
scheduler = OneCycleLR(optimizer, max_lr=5e-3, epochs=epochs, steps_per_epoch=micro_batches // accum)
proteins = torch.randint(0, 22, (micro_batches, 4, 10))


def train_one_epoch():
    for i, seq in enumerate(proteins):
        log_probs = model(seq).log_softmax(-1)
        loss = nn.functional.nll_loss(log_probs.flatten(0, 1), seq.roll(1, 1).flatten()) / accum
        loss.backward()
        if i % accum == accum - 1:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        scheduler.step()  # <- scheduler-cadence, cause
    return loss.item() * accum


for epoch in range(epochs):
    print("epoch", epoch, "train loss", train_one_epoch())
