# Prompt tuning: the prompt is copied into the embedded text through .data, so the loss reaches the text's copy only.
# source: none (a common mistake, written small)
# expect: step-without-backward
# cause: not found (what cuts the weights off is not looked for)
import torch
from torch import nn

torch.manual_seed(8)
embed, encoder, head = nn.Embedding(40, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 2)
nn.ModuleList([embed, encoder, head]).requires_grad_(False)
prompt = nn.Parameter(torch.randn(3, 8) * 0.1)
optimizer = torch.optim.Adam([prompt], lr=0.05)


def with_prompt(ids):
    text = embed(ids).requires_grad_()
    text.data[:, :3] = prompt.data  # <- cause
    return text


for ids in torch.randint(0, 40, (25, 6, 7)):
    optimizer.zero_grad()
    _, last = encoder(with_prompt(ids))
    loss = nn.functional.cross_entropy(head(last[0]), ids[:, -1] % 2)  # <- cause
    loss.backward()  # <- cause
    optimizer.step()  # <- step-without-backward, cause
print(loss.item())
