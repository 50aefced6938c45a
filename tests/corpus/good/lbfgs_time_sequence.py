# LBFGS in double precision on the whole data at once: one step() evaluates the closure up to twenty times.
# source: pytorch/examples time_sequence_prediction/train.py
import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, 12)
        self.linear = nn.Linear(12, 1)

    def forward(self, x, future=0):
        outputs = []
        h_t = torch.zeros(x.size(0), 12, dtype=torch.double)
        c_t = torch.zeros(x.size(0), 12, dtype=torch.double)
        for input_t in x.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            output = self.linear(h_t)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            output = self.linear(h_t)
            outputs += [output]
        return torch.cat(outputs, dim=1)


if __name__ == "__main__":
    np.random.seed(0)
    torch.manual_seed(0)
    phase = np.random.randint(-40, 40, 8).reshape(-1, 1)
    data = np.sin((np.arange(30) + phase) / 5.0).astype("float64")
    source, target = torch.from_numpy(data[2:, :-1]), torch.from_numpy(data[2:, 1:])
    test_input, test_target = torch.from_numpy(data[:2, :-1]), torch.from_numpy(data[:2, 1:])
    seq = Sequence()
    seq.double()
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=6)
    for i in range(8):

        def closure():
            optimizer.zero_grad()
            out = seq(source)
            loss = criterion(out, target)
            loss.backward()
            return loss

        loss = optimizer.step(closure)
        with torch.no_grad():
            pred = seq(test_input, future=5)
            test_loss = criterion(pred[:, :-5], test_target)
        print(f"STEP {i} loss {loss.item():.5f} test {test_loss.item():.5f}")
