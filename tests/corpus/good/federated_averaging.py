# Federated averaging: copies of the global model learn with optimizers made anew each round; the global model itself is
# never stepped, its weights are the mean of theirs.
# source: AshwinRJ/Federated-Learning-PyTorch src/federated_main.py
import copy

import torch
from torch import nn

torch.manual_seed(100)


class LocalUpdate:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def update_weights(self, model):
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
        epoch_loss = []
        for _ in range(2):
            for i in range(0, len(self.x), 10):
                model.zero_grad()
                loss = nn.functional.nll_loss(model(self.x[i : i + 10]), self.y[i : i + 10])
                loss.backward()
                optimizer.step()
                epoch_loss.append(loss.item())
        return model.state_dict(), sum(epoch_loss) / len(epoch_loss)


def average_weights(w):
    w_avg = copy.deepcopy(w[0])
    for key in w_avg:
        for other in w[1:]:
            w_avg[key] += other[key]
        w_avg[key] = torch.div(w_avg[key], len(w))
    return w_avg


users = []
for _ in range(4):
    x = torch.randn(40, 6) + torch.randn(1, 6) * 0.3
    users.append(LocalUpdate(x, x[:, :3].argmax(1)))
global_model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3), nn.LogSoftmax(dim=1))
for round_ in range(5):
    local_weights, local_losses = [], []
    for user in torch.randperm(4)[:3].tolist():
        w, loss = users[user].update_weights(copy.deepcopy(global_model))
        local_weights.append(copy.deepcopy(w))
        local_losses.append(loss)
    global_model.load_state_dict(average_weights(local_weights))
    print(round_, sum(local_losses) / len(local_losses))
