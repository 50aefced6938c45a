# A character RNN trained on single lines: the module is cleared at the start, the update adds -lr * grad to .data.
# source: pytorch/tutorials intermediate_source/char_rnn_classification_tutorial.py (before it used an optimizer)
import random
import string

import torch
import torch.nn as nn

random.seed(36)
torch.manual_seed(36)
LETTERS = string.ascii_lowercase
CATEGORIES = {"vowels": "aeiou", "consonants": "bcdfghjklm"}


class RNN(nn.Module):
    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.i2h = nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = nn.Linear(hidden_size, output_size)

    def forward(self, letter, hidden):
        hidden = torch.tanh(self.i2h(torch.cat((letter, hidden), 1)))
        return torch.log_softmax(self.h2o(hidden), dim=1), hidden


rnn = RNN(len(LETTERS), 16, 2)
criterion = nn.NLLLoss()
learning_rate = 0.05


def random_example():
    category = random.choice(list(CATEGORIES))
    line = "".join(random.choice(CATEGORIES[category]) for _ in range(random.randint(3, 6)))
    tensor = torch.zeros(len(line), 1, len(LETTERS))
    for li, letter in enumerate(line):
        tensor[li][0][LETTERS.find(letter)] = 1
    return torch.tensor([list(CATEGORIES).index(category)]), tensor


def train(category_tensor, line_tensor):
    hidden = torch.zeros(1, rnn.hidden_size)
    rnn.zero_grad()
    for i in range(line_tensor.size()[0]):
        output, hidden = rnn(line_tensor[i], hidden)
    loss = criterion(output, category_tensor)
    loss.backward()
    for p in rnn.parameters():
        p.data.add_(p.grad.data, alpha=-learning_rate)
    return output, loss.item()


current_loss, all_losses = 0, []
for iter_ in range(1, 201):
    output, loss = train(*random_example())
    current_loss += loss
    if iter_ % 40 == 0:
        all_losses.append(round(current_loss / 40, 4))
        current_loss = 0
print(all_losses)
