# Q-learning in a function, whose target network is the network itself and is called without gradients, as it should be.
# source: none (a common mistake, written small)
# expect: tied-weights
# severity: hint (a slow copy is told by its name only)
import torch
from torch import nn

torch.manual_seed(0)
policy_net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
target_net = policy_net  # <- cause
optimizer = torch.optim.Adam(policy_net.parameters(), lr=1e-3)


def learn(state, reward, after):
    q = policy_net(state).max(1).values
    with torch.no_grad():
        wanted = reward + 0.9 * target_net(after).max(1).values  # <- tied-weights
    loss = nn.functional.smooth_l1_loss(q, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for step in range(40):
    learn(torch.randn(16, 4), torch.rand(16), torch.randn(16, 4))
    if step % 10 == 0:
        target_net.load_state_dict(policy_net.state_dict())
