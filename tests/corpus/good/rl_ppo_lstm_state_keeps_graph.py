# PPO with an LSTM: the recurrent state of the rollout is never detached, so it holds the graphs of the batches of an
# episode, until the next one begins. The updates start from detached copies, and prob = prob.view(-1) stores nothing.
# hint: graph-retained-memory-leak (the state keeps its graph until the episode ends)
# source: seungeunrho/minimalRL ppo-lstm.py
import torch
from torch import nn, optim
from torch.distributions import Categorical
from torch.nn import functional as F

torch.manual_seed(251)
T_horizon, K_epoch = 4, 2


class PPO(nn.Module):
    def __init__(self):
        super().__init__()
        self.data = []
        self.fc1 = nn.Linear(4, 16)
        self.lstm = nn.LSTM(16, 8)
        self.fc_pi = nn.Linear(8, 2)
        self.fc_v = nn.Linear(8, 1)
        self.optimizer = optim.Adam(self.parameters(), lr=0.0005)

    def pi(self, x, hidden):
        x = F.relu(self.fc1(x)).view(-1, 1, 16)
        x, lstm_hidden = self.lstm(x, hidden)
        return F.softmax(self.fc_pi(x), dim=2), lstm_hidden

    def v(self, x, hidden):
        x = F.relu(self.fc1(x)).view(-1, 1, 16)
        return self.fc_v(self.lstm(x, hidden)[0]).squeeze(1)

    def train_net(self):
        s, a, r, s_prime, prob_a, h_in, h_out = zip(*self.data, strict=True)
        self.data = []
        s, s_prime = torch.stack(s), torch.stack(s_prime)
        a, r, prob_a = (torch.tensor(one).unsqueeze(1) for one in (a, r, prob_a))
        first_hidden = tuple(h.detach() for h in h_in[0])
        second_hidden = tuple(h.detach() for h in h_out[0])
        for _ in range(K_epoch):
            td_target = r + 0.98 * self.v(s_prime, second_hidden)
            v_s = self.v(s, first_hidden)
            advantage = (td_target - v_s).detach()
            pi, _ = self.pi(s, first_hidden)
            ratio = torch.exp(torch.log(pi.squeeze(1).gather(1, a)) - torch.log(prob_a))
            surrogate = torch.min(ratio * advantage, torch.clamp(ratio, 0.9, 1.1) * advantage)
            loss = -surrogate + F.smooth_l1_loss(v_s, td_target.detach())
            self.optimizer.zero_grad()
            loss.mean().backward(retain_graph=True)
            self.optimizer.step()


model = PPO()
for n_epi in range(3):
    h_out = (torch.zeros(1, 1, 8), torch.zeros(1, 1, 8))
    s, score = torch.randn(4), 0.0
    for _ in range(14):
        for _t in range(T_horizon):
            h_in = h_out
            prob, h_out = model.pi(s, h_in)
            prob = prob.view(-1)
            a = Categorical(prob).sample().item()
            s_prime = 0.9 * s + 0.1 * torch.randn(4)
            r = float(s_prime[a])
            model.data.append((s, a, r, s_prime, prob[a].item(), h_in, h_out))
            s = s_prime
            score += r
        model.train_net()
    print(f"episode {n_epi} score {score:.2f}")
