# A sequence model whose LSTM cells are appended to a plain list attribute, as in a learned optimizer.
# source: ikostrikov/pytorch-meta-optimizer#11
# expect: params-missing-from-optimizer
import torch
from torch import nn


class SequenceModel(nn.Module):
    def __init__(self, hidden_size=12, num_layers=2):
        super().__init__()
        self.linear1 = nn.Linear(3, hidden_size)
        self.ln1 = nn.LayerNorm(hidden_size)
        self.lstms = []  # <- cause
        for _ in range(num_layers):
            self.lstms.append(nn.LSTMCell(hidden_size, hidden_size))  # <- cause
        self.linear2 = nn.Linear(hidden_size, 1)

    def forward(self, x):
        states = [None] * len(self.lstms)
        for step in x.unbind(1):
            h = torch.tanh(self.ln1(self.linear1(step)))
            for i, cell in enumerate(self.lstms):
                states[i] = cell(h, states[i])
                h = states[i][0]
        return self.linear2(h).squeeze(-1)


class Experiment:
    def __init__(self):
        self.model = SequenceModel()
        trainable = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.Adam(trainable, lr=1e-2)  # <- params-missing-from-optimizer

    def run(self, epochs=12):
        for epoch in range(epochs):
            x = torch.randn(16, 6, 3)
            loss = nn.functional.huber_loss(self.model(x), x[:, 0, 0])
            self.model.zero_grad()
            loss.backward()
            self.optimizer.step()
            if epoch % 4 == 0:
                print(f"epoch {epoch}, loss {loss.item():.4f}")


torch.manual_seed(3)
Experiment().run()
