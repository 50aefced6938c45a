# A character RNN created once beside its optimizer and created again just before the training loop.
# source: spro/practical-pytorch#9
# expect: optimizer-holds-stale-params
import torch
import torch.nn as nn

torch.manual_seed(1)
n_letters, n_hidden, n_categories = 10, 16, 4


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.i2o = nn.Linear(input_size + hidden_size, output_size)

    def forward(self, x, hidden):
        combined = torch.cat((x, hidden), 1)
        return torch.log_softmax(self.i2o(combined), dim=1), torch.tanh(self.i2h(combined))

    def init_hidden(self):
        return torch.zeros(1, self.hidden_size)


rnn = RNN(n_letters, n_hidden, n_categories)
criterion = nn.NLLLoss()
learning_rate = 0.005
optimizer = torch.optim.SGD(rnn.parameters(), lr=learning_rate)  # <- optimizer-holds-stale-params


def train(category_tensor, line_tensor):
    hidden = rnn.init_hidden()
    rnn.zero_grad()
    for i in range(line_tensor.size(0)):
        output, hidden = rnn(line_tensor[i], hidden)
    loss = criterion(output, category_tensor)
    loss.backward()
    optimizer.step()
    return output, loss.item()


current_loss = 0
rnn = RNN(n_letters, n_hidden, n_categories)  # <- cause
for epoch in range(1, 41):
    letters = torch.randint(0, n_letters, (5,))
    line = nn.functional.one_hot(letters, n_letters).float().unsqueeze(1)
    output, loss = train(letters[-1:] % n_categories, line)
    current_loss += loss
    if epoch % 10 == 0:
        print(f"{epoch} {current_loss / 10:.4f}")
        current_loss = 0
