# A recurrent model on a chain of small graphs, where the clip comes after the step that it should protect.
# source: VGraphRNN/VGRNN#4
# expect: clip-after-step
import torch
import torch.nn as nn

torch.manual_seed(0)


class VGRNN(nn.Module):
    def __init__(self, x_dim=6, h_dim=10, z_dim=4):
        super().__init__()
        self.h_dim = h_dim
        self.phi = nn.Linear(x_dim, h_dim)
        self.enc = nn.Linear(2 * h_dim, 2 * z_dim)
        self.rnn = nn.GRUCell(h_dim + z_dim, h_dim)

    def forward(self, xs, adjs):
        h = torch.zeros(xs.shape[1], self.h_dim)
        kld, nll = 0.0, 0.0
        for x, adj in zip(xs, adjs, strict=True):
            phi = torch.relu(adj @ self.phi(x))
            mean, logvar = self.enc(torch.cat([phi, h], 1)).chunk(2, 1)
            z = mean + (0.5 * logvar).exp() * torch.randn_like(mean)
            nll = nll + nn.functional.binary_cross_entropy_with_logits(z @ z.T, (adj > 0).float())
            kld = kld - 0.5 * (1 + logvar - mean**2 - logvar.exp()).mean()
            h = self.rnn(torch.cat([phi, z], 1), h)
        return kld, nll


model = VGRNN()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
clip = 1.0
xs = torch.randn(5, 8, 6)
adjs = (torch.rand(5, 8, 8) > 0.6).float()
adjs = ((adjs + adjs.transpose(1, 2) + torch.eye(8)) > 0).float() / 8

for k in range(16):
    optimizer.zero_grad()
    kld_loss, nll_loss = model(xs, adjs)
    loss = kld_loss + nll_loss
    loss.backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)  # <- clip-after-step, cause
    if k % 5 == 0:
        print("epoch:", k, "loss", round(loss.item(), 4))
