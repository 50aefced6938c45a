# Virtual adversarial training: the power iteration calls backward and model.zero_grad() inside the forward of the
# loss; the loss itself is built after it. BatchNorm's running statistics are held meanwhile.
# source: lyakaap/VAT-pytorch vat.py
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F


@contextlib.contextmanager
def _disable_tracking_bn_stats(model):
    def switch_attr(m):
        if hasattr(m, "track_running_stats"):
            m.track_running_stats ^= True

    model.apply(switch_attr)
    yield
    model.apply(switch_attr)


def _l2_normalize(d):
    return d / (d.flatten(1).norm(dim=1, keepdim=True) + 1e-8)


class VATLoss(nn.Module):
    def __init__(self, xi=1.0, eps=0.5, ip=1):
        super().__init__()
        self.xi, self.eps, self.ip = xi, eps, ip

    def forward(self, model, x):
        with torch.no_grad():
            pred = F.softmax(model(x), dim=1)
        d = _l2_normalize(torch.rand(x.shape).sub(0.5))
        with _disable_tracking_bn_stats(model):
            for _ in range(self.ip):
                d.requires_grad_()
                logp_hat = F.log_softmax(model(x + self.xi * d), dim=1)
                adv_distance = F.kl_div(logp_hat, pred, reduction="batchmean")
                adv_distance.backward()
                d = _l2_normalize(d.grad)
                model.zero_grad()
            logp_hat = F.log_softmax(model(x + d * self.eps), dim=1)
            return F.kl_div(logp_hat, pred, reduction="batchmean")


torch.manual_seed(20)
net = nn.Sequential(nn.Linear(2, 32), nn.BatchNorm1d(32), nn.LeakyReLU(0.1), nn.Linear(32, 2))
opt = torch.optim.Adam(net.parameters(), lr=5e-3)
vat_loss, ce = VATLoss(), nn.CrossEntropyLoss()
for i in range(60):
    angle = torch.rand(64) * 6.283
    ul = torch.stack([angle.cos(), angle.sin()], 1)
    x, y = ul[:8], (ul[:8, 0] > 0).long()
    opt.zero_grad()
    lds = vat_loss(net, ul)
    classification_loss = ce(net(x), y)
    loss = classification_loss + 1.0 * lds
    loss.backward()
    opt.step()
    if i % 20 == 0:
        print(i, f"ce {classification_loss.item():.4f} lds {lds.item():.5f}")
