# Truncated BPTT where the chunks of one sequence are all sent back before a single step: the hidden state is detached
# between them, the gradients are not cleared.
# source: lightning.ai/docs/pytorch/stable/common/tbptt.html
import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

TRUNCATED_BPTT_STEPS = 5


class ParityModuleRNN(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.RNN(1, hidden, batch_first=True)
        self.linear_out = nn.Linear(hidden, 1)

    def forward(self, x, hiddens=None):
        out, hiddens = self.rnn(x, hiddens)
        return self.linear_out(out), hiddens


def fit(model, loader, optimizer, max_epochs):
    for epoch in range(max_epochs):
        for x, y in loader:
            optimizer.zero_grad(set_to_none=False)
            hiddens, chunks = (
                None,
                list(zip(x.split(TRUNCATED_BPTT_STEPS, 1), y.split(TRUNCATED_BPTT_STEPS, 1), strict=True)),
            )
            loss_sum = 0.0
            for split_x, split_y in chunks:
                out, hiddens = model(split_x, hiddens)
                loss = F.binary_cross_entropy_with_logits(out, split_y) / len(chunks)
                loss.backward()
                hiddens = hiddens.detach()
                loss_sum += float(loss)
            optimizer.step()
        print(f"epoch {epoch} loss {loss_sum:.4f}")


if __name__ == "__main__":
    torch.manual_seed(44)
    bits = (torch.rand(96, 20, 1) > 0.5).float()
    previous = torch.cat([torch.zeros(96, 1, 1), bits[:, :-1]], 1)
    dataset = TensorDataset(bits, previous)
    net = ParityModuleRNN()
    fit(net, DataLoader(dataset, batch_size=12), optim.Adam(net.parameters(), lr=1e-2), max_epochs=4)
