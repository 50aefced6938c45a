# Truncated BPTT with k1 < k2: every k1 steps the loss is sent back through the last k2 states, one by one, always with
# retain_graph=True, because the next loss passes through the same states again; one optimizer step a sequence.
# source: discuss.pytorch.org/t/implementing-truncated-backpropagation-through-time/15500
import torch
from torch import nn


class TBPTT:
    def __init__(self, cell, head, loss_fn, k1, k2, optimizer):
        self.cell, self.head, self.loss_fn = cell, head, loss_fn
        self.k1, self.k2, self.optimizer = k1, k2, optimizer
        self.retain_graph = k1 < k2

    def train(self, input_sequence, init_state):
        self.optimizer.zero_grad()
        states = [(None, init_state)]
        total = 0.0
        for j, (inp, target) in enumerate(input_sequence):
            state = states[-1][1].detach()
            state.requires_grad = True
            states.append((state, self.cell(inp, state)))
            while len(states) > self.k2:
                del states[0]
            if (j + 1) % self.k1 == 0:
                for s, _ in states:
                    if s is not None:
                        s.grad = None
                loss = self.loss_fn(self.head(states[-1][1]), target)
                loss.backward(retain_graph=self.retain_graph)
                for i in range(len(states) - 1):
                    if states[-i - 2][0] is None:
                        break
                    curr_grad = states[-i - 1][0].grad
                    states[-i - 2][1].backward(curr_grad, retain_graph=self.retain_graph)
                total += loss.item()
        nn.utils.clip_grad_norm_([p for g in self.optimizer.param_groups for p in g["params"]], 5.0)
        self.optimizer.step()
        return total / (len(input_sequence) // self.k1)


torch.manual_seed(43)
cell, head = nn.GRUCell(1, 16), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=5e-3)
runner = TBPTT(cell, head, nn.MSELoss(), k1=2, k2=6, optimizer=optimizer)
for n in range(40):
    x = torch.randn(24, 8, 1)
    y = x + 0.5 * torch.cat([torch.zeros(2, 8, 1), x[:-2]])
    loss = runner.train(list(zip(x, y, strict=True)), torch.zeros(8, 16))
    if n % 10 == 0:
        print(n, round(loss, 4))
