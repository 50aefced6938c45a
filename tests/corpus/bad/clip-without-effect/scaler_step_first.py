# A float16 language model that clips by value behind scaler.step(), when the update is already done.
# source: emited/VariationalRecurrentNeuralNetwork#3
# expect: clip-without-effect
import torch
from torch import nn

torch.manual_seed(3)
emb, rnn, out = nn.Embedding(18, 12), nn.GRU(12, 16, batch_first=True), nn.Linear(16, 18)
model = nn.ModuleList([emb, rnn, out])
opt = torch.optim.SGD(model.parameters(), lr=0.5)
scaler = torch.amp.GradScaler("cpu", init_scale=512.0)
text = torch.randint(0, 18, (12, 8, 7))


def train_one(tokens):
    hidden, _ = rnn(emb(tokens[:, :-1]))
    with torch.autocast("cpu", dtype=torch.float16):
        logits = out(hidden)
    loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens[:, 1:].flatten())
    opt.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    nn.utils.clip_grad_value_(model.parameters(), 0.01)  # <- clip-without-effect, cause
    return loss.item()


for step, tokens in enumerate(text):
    value = train_one(tokens)
    if step % 4 == 0:
        print(f"{step} {value:.4f}")
