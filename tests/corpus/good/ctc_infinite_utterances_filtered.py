# CTC without reduction: utterances that are too short for their transcript have an infinite loss; a look under no_grad
# finds them, and the loss that is sent back is computed from the others.
# source: k2-fsa/icefall#135, pytorch/pytorch#16199
import torch
from torch import nn

torch.manual_seed(239)
vocabulary, frames = 6, 12
acoustic = nn.GRU(8, 24, bidirectional=True)
to_tokens = nn.Linear(48, vocabulary)
ctc = nn.CTCLoss(reduction="none", zero_infinity=False)
optimizer = torch.optim.Adam([*acoustic.parameters(), *to_tokens.parameters()], lr=1e-2)
sounds, filtered = torch.randn(vocabulary, 8), 0

for step in range(60):
    targets = torch.randint(1, vocabulary, (10, 4))
    lengths = torch.randint(2, frames + 1, (10,))
    spoken = targets.repeat_interleave(3, dim=1).T
    features = sounds[spoken] + 0.3 * torch.randn(frames, 10, 8)
    log_probs = to_tokens(acoustic(features)[0]).log_softmax(-1)
    with torch.no_grad():
        finite = torch.isfinite(ctc(log_probs, targets, lengths, torch.full((10,), 4)))
    filtered += int((~finite).sum())
    keep = finite.nonzero().flatten()
    losses = ctc(log_probs[:, keep], targets[keep], lengths[keep], torch.full((len(keep),), 4))
    loss = losses.sum() / lengths[keep].sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 15 == 0:
        print(step, f"loss {loss.item():.4f} filtered so far {filtered}")
