# Both losses of a GAN are computed first; then D steps, and G's loss goes back through D's weights of before.
# source: MorvanZhou/PyTorch-Tutorial#89
# expect: modified-in-place
# raises: RuntimeError
import torch
from torch import nn

torch.manual_seed(71)
G = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 15))
D = nn.Sequential(nn.Linear(15, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
opt_d, opt_g = torch.optim.Adam(D.parameters(), lr=1e-4), torch.optim.Adam(G.parameters(), lr=1e-4)
for step in range(20):
    artist_paintings = torch.sin(torch.linspace(-3, 3, 15)) + 0.02 * torch.randn(64, 1)
    paintings = G(torch.randn(64, 5))
    prob0, prob1 = D(artist_paintings), D(paintings)
    D_loss = -torch.mean(torch.log(prob0) + torch.log(1.0 - prob1))
    G_loss = torch.mean(torch.log(1.0 - prob1))  # <- cause
    opt_d.zero_grad()
    D_loss.backward(retain_graph=True)
    opt_d.step()  # <- cause
    opt_g.zero_grad()
    G_loss.backward()  # <- modified-in-place
    opt_g.step()
    print(step, D_loss.item())
