# Domain-adversarial training: the gradient is reversed by a custom Function, so one optimizer both helps and fools.
# source: fungtion/DANN train/main.py
import math

import torch
import torch.nn as nn
from torch.autograd import Function


class ReverseLayerF(Function):
    @staticmethod
    def forward(ctx, x, alpha):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None


class CNNModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.feature = nn.Sequential(nn.Conv1d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(24, 12))
        self.class_classifier = nn.Sequential(nn.Linear(12, 2), nn.LogSoftmax(dim=1))
        self.domain_classifier = nn.Sequential(nn.Linear(12, 2), nn.LogSoftmax(dim=1))

    def forward(self, x, alpha):
        feature = self.feature(x)
        return self.class_classifier(feature), self.domain_classifier(ReverseLayerF.apply(feature, alpha))


torch.manual_seed(8)
my_net = CNNModel()
optimizer = torch.optim.Adam(my_net.parameters(), lr=5e-3)
loss_class, loss_domain = nn.NLLLoss(), nn.NLLLoss()
n_epoch, n_batches = 4, 10

for epoch in range(n_epoch):
    for i in range(n_batches):
        p = float(i + epoch * n_batches) / n_epoch / n_batches
        alpha = 2.0 / (1.0 + math.exp(-10 * p)) - 1
        s_label = torch.randint(0, 2, (16,))
        s_img = torch.randn(16, 1, 8) + s_label.view(-1, 1, 1)
        my_net.zero_grad()
        class_output, domain_output = my_net(s_img, alpha)
        err_s_label = loss_class(class_output, s_label)
        err_s_domain = loss_domain(domain_output, torch.zeros(16).long())
        t_img = torch.randn(16, 1, 8) + 0.5
        _, domain_output = my_net(t_img, alpha)
        err_t_domain = loss_domain(domain_output, torch.ones(16).long())
        err = err_t_domain + err_s_domain + err_s_label
        err.backward()
        optimizer.step()
    print(f"epoch {epoch}: err_s_label {err_s_label.item():.3f} err_domain {err_t_domain.item():.3f}")
