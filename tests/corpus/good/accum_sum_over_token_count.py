# Supervised fine-tuning: all micro-batches of a step are collected first, so that each summed loss can be divided by
# the number of valid tokens in the whole step.
# source: karpathy/nanochat#400
import itertools

import torch
import torch.nn.functional as F

torch.manual_seed(69)
rnn, head = torch.nn.GRU(6, 20, batch_first=True), torch.nn.Linear(20, 6)
optimizers = [torch.optim.Adam(rnn.parameters(), lr=1e-2), torch.optim.SGD(head.parameters(), lr=0.5, momentum=0.9)]


def conversations():
    while True:
        n, t = int(torch.randint(1, 4, ())), int(torch.randint(4, 12, ()))
        ids = torch.randint(0, 6, (n, t))
        targets = ids.roll(1, dims=1)
        targets[:, 0] = -1
        yield ids, targets


stream = conversations()
for step in range(30):
    micro_batches = list(itertools.islice(stream, 4))
    num_tokens = sum((targets >= 0).sum() for _, targets in micro_batches)
    step_loss = 0.0
    for ids, targets in micro_batches:
        logits = head(rnn(F.one_hot(ids, 6).float())[0])
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1, reduction="sum")
        loss = loss / num_tokens
        loss.backward()
        step_loss += loss.item()
    for opt in optimizers:
        opt.step()
    rnn.zero_grad(set_to_none=True)
    head.zero_grad(set_to_none=True)
    if step % 10 == 0:
        print(f"step {step:02d} | loss {step_loss:.4f} | tokens {num_tokens.item()}")
