# A reservoir with fixed recurrent weights and a trained input layer; self.state is never reset, the graph is retained.
# source: sgadgil6/cnslab_fmri#4
# expect: retain-graph-growth
import torch
import torch.nn as nn


class EchoState(nn.Module):
    def __init__(self, n_regions=5, hidden_dim=20, batch=4):
        super().__init__()
        self.input = nn.Linear(n_regions, hidden_dim)
        recurrent = torch.randn(hidden_dim, hidden_dim)
        self.register_buffer("recurrent", 0.9 * recurrent / torch.linalg.matrix_norm(recurrent, 2))
        self.readout = nn.Linear(hidden_dim, 1)
        self.state = torch.zeros(batch, hidden_dim)

    def forward(self, window):
        for t in range(window.shape[1]):  # <- cause
            self.state = torch.tanh(self.input(window[:, t]) + self.state @ self.recurrent)
        return self.readout(self.state).squeeze(1)  # <- cause


def run_training():
    torch.manual_seed(2)
    net = EchoState()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-3)
    criterion = nn.BCEWithLogitsLoss()
    scans = torch.randn(4, 90, 5)
    sex = torch.tensor([0.0, 1.0, 1.0, 0.0])
    for i, start in enumerate(range(0, 90, 6)):
        outputs = net(scans[:, start : start + 6])  # <- cause
        loss = criterion(outputs, sex)
        optimizer.zero_grad(set_to_none=True)
        loss.backward(retain_graph=True)  # <- retain-graph-growth, cause
        optimizer.step()
        if i % 4 == 0:
            print(f"window {i} loss {loss.item():.4f}")


run_training()
