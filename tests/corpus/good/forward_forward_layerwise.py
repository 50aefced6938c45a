# The forward-forward algorithm: every layer has an optimizer and a loss of its own, learns on detached inputs, and its
# train() is a method that trains, not a mode.
# source: pytorch/examples mnist_forward_forward/main.py, mpezeshki/pytorch_forward_forward main.py
import torch
import torch.nn as nn
from torch.optim import Adam

torch.manual_seed(99)


def overlay_y_on_x(x, y, classes=3):
    x_ = x.clone()
    x_[:, :classes] *= 0.0
    x_[range(x.shape[0]), y] = x.max()
    return x_


class Layer(nn.Linear):
    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features)
        self.opt = Adam(self.parameters(), lr=0.03)
        self.threshold, self.num_epochs = 0.5, 150

    def forward(self, x):
        direction = x / (x.norm(2, 1, keepdim=True) + 1e-4)
        return torch.relu(torch.mm(direction, self.weight.T) + self.bias.unsqueeze(0))

    def fit(self, x_pos, x_neg):
        for _ in range(self.num_epochs):
            g_pos = self.forward(x_pos).pow(2).mean(1)
            g_neg = self.forward(x_neg).pow(2).mean(1)
            loss = torch.log(1 + torch.exp(torch.cat([-g_pos + self.threshold, g_neg - self.threshold]))).mean()
            self.opt.zero_grad()
            # not backpropagation through layers: only this layer has a graph
            loss.backward()
            self.opt.step()
        return self.forward(x_pos).detach(), self.forward(x_neg).detach(), loss.item()


layers = [Layer(12, 40), Layer(40, 40)]
x = torch.rand(150, 12)
y = x[:, 3:6].argmax(1)
h_pos, h_neg = overlay_y_on_x(x, y), overlay_y_on_x(x, (y + torch.randint(1, 3, (150,))) % 3)
for i, layer in enumerate(layers):
    h_pos, h_neg, loss = layer.fit(h_pos, h_neg)
    print("training layer", i, loss)

with torch.no_grad():
    goodness_per_label = []
    for label in range(3):
        h, goodness = overlay_y_on_x(x, torch.full((150,), label)), 0
        for layer in layers:
            h = layer(h)
            goodness = goodness + h.pow(2).mean(1)
        goodness_per_label.append(goodness)
print("accuracy", (torch.stack(goodness_per_label, 1).argmax(1) == y).float().mean().item())
