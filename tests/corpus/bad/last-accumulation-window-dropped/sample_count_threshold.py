# Steps when enough samples have been seen; what is left below the threshold at the end of an epoch is cleared.
# source: tomhosking/torchseq#8
# expect: last-accumulation-window-dropped
import torch
from torch import nn

torch.manual_seed(13)
encoder = nn.GRU(4, 10)
decoder = nn.Linear(10, 4)
params = list(encoder.parameters()) + list(decoder.parameters())
optimizer = torch.optim.Adagrad(params, lr=0.05)
optim_batch_size = 24
sequences = [torch.randn(6, 8, 4) for _ in range(10)]


def train_one_epoch(epoch):
    encoder.zero_grad()
    decoder.zero_grad()
    samples_since_step = 0
    for seq in sequences:
        hidden, _ = encoder(seq[:-1])
        loss = (decoder(hidden) - seq[1:]).pow(2).mean()
        (loss * seq.shape[1] / optim_batch_size).backward()
        samples_since_step += seq.shape[1]
        if samples_since_step >= optim_batch_size:  # <- cause
            optimizer.step()  # <- last-accumulation-window-dropped
            encoder.zero_grad()
            decoder.zero_grad()
            samples_since_step = 0
    return loss.item()  # <- cause


for epoch in range(4):
    print(epoch, train_one_epoch(epoch))
