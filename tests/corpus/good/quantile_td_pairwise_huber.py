# Quantile-regression DQN: every predicted quantile (N, T, 1) is compared with every target quantile (N, 1, T), so
# smooth_l1_loss is given shapes that broadcast, on purpose; PyTorch warns about the sizes.
# source: arxiv.org/abs/1710.10044, Shmuma/ptan samples/quantile_regression
import torch
from torch import nn

torch.manual_seed(219)
n_quantiles, n_actions, gamma = 8, 2, 0.9
net = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, n_actions * n_quantiles))
target_net = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, n_actions * n_quantiles))
target_net.load_state_dict(net.state_dict())
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, eps=1e-2 / 32)
tau = (torch.arange(n_quantiles) + 0.5) / n_quantiles

for step in range(120):
    state = torch.rand(32, 3) * 2 - 1
    action = torch.randint(0, n_actions, (32,))
    reward = (state[:, 0] * (2 * action - 1)) + 0.3 * torch.randn(32)
    next_state = (state + 0.1 * torch.randn_like(state)).clamp(-1, 1)
    done = torch.rand(32) < 0.5
    with torch.no_grad():
        future = target_net(next_state).view(32, n_actions, n_quantiles)
        best = future.mean(2).argmax(1)
        target = reward[:, None] + gamma * (~done)[:, None] * future[torch.arange(32), best]
    theta = net(state).view(32, n_actions, n_quantiles)[torch.arange(32), action]
    huber = nn.functional.smooth_l1_loss(theta[:, :, None], target[:, None, :], reduction="none")
    above = (target[:, None, :] < theta[:, :, None]).float()
    loss = ((tau[:, None] - above).abs() * huber).sum(1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        target_net.load_state_dict(net.state_dict())
        print(step, loss.item())
