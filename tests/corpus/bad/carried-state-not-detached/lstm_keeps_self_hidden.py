# An LSTM module keeps (h, c) on self between batches; the second batch walks back into the first one's graph.
# source: pytorch/pytorch#2769
# expect: carried-state-not-detached
# raises: RuntimeError
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset


class LSTMClassifier(nn.Module):
    def __init__(self, input_len=6, hidden_len=10, target_size=4, batch_size=5):
        super().__init__()
        self.lstm = nn.LSTM(input_len, hidden_len, batch_first=True)
        self.hidden2class = nn.Linear(hidden_len, target_size)
        self.hidden = (torch.zeros(1, batch_size, hidden_len), torch.zeros(1, batch_size, hidden_len))

    def forward(self, x):
        lstm_out, self.hidden = self.lstm(x, self.hidden)  # <- cause
        return F.log_softmax(self.hidden2class(lstm_out[:, -1, :]), dim=1)


def train(train_data, model, criterion, optimizer, epoch):
    model.train()
    for i, (inputs, target) in enumerate(train_data):
        output = model(inputs)  # <- cause
        loss = criterion(output, target)
        optimizer.zero_grad()
        loss.backward()  # <- carried-state-not-detached
        optimizer.step()
        print(f"Epoch: [{epoch}][{i}/{len(train_data)}] Loss {loss.item():.4f}")


torch.manual_seed(2)
model = LSTMClassifier()
videos = TensorDataset(torch.randn(50, 7, 6), torch.randint(0, 4, (50,)))
for epoch in range(2):
    train(DataLoader(videos, batch_size=5), model, nn.NLLLoss(), SGD(model.parameters(), lr=0.01), epoch)
