# Accumulation without a backward for each batch: unnormalised losses are added up with their graphs over the window,
# and the sum is divided by the number of tokens and sent back once. The graphs are meant to live until then.
# source: meta-pytorch/torchtune#1875
import torch
from torch import nn

torch.manual_seed(108)
model = nn.Sequential(nn.Embedding(16, 20), nn.Linear(20, 20), nn.ReLU(), nn.Linear(20, 16))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
loss_fn = nn.CrossEntropyLoss(ignore_index=-100)
gradient_accumulation_steps = 4


def batches(n):
    for _ in range(n):
        tokens = torch.randint(0, 16, (3, 8))
        labels = (tokens * 5 + 1) % 16
        labels[:, int(torch.randint(3, 8, ())) :] = -100
        yield tokens, labels


running_loss, num_tokens = 0, 0
for idx, (tokens, labels) in enumerate(batches(80)):
    current_num_tokens = (labels != -100).sum()
    num_tokens += current_num_tokens
    logits = model(tokens)
    running_loss += loss_fn(logits.flatten(0, 1), labels.flatten()) * current_num_tokens
    if (idx + 1) % gradient_accumulation_steps == 0:
        loss = running_loss / num_tokens
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if (idx + 1) % 20 == 0:
            print(idx, loss.item(), num_tokens.item())
        running_loss, num_tokens = 0, 0
