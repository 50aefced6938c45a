# A3C: the loss is computed on a local copy, whose gradients are handed to the shared model by reference; the optimizer
# of the shared model steps, and the local copy is cleared and reloaded. Runs here with one worker thread.
# source: ikostrikov/pytorch-a3c train.py
import threading

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTMCell(2, 12)
        self.critic_linear, self.actor_linear = nn.Linear(12, 1), nn.Linear(12, 2)

    def forward(self, x, hx, cx):
        hx, cx = self.lstm(x, (hx, cx))
        return self.critic_linear(hx), self.actor_linear(hx), hx, cx


def ensure_shared_grads(model, shared_model):
    for param, shared_param in zip(model.parameters(), shared_model.parameters(), strict=True):
        if shared_param.grad is not None:
            return
        shared_param._grad = param.grad


def train(shared_model, optimizer, updates=40, num_steps=6):
    torch.manual_seed(41)
    model = ActorCritic()
    model.train()
    hx, cx = torch.zeros(1, 12), torch.zeros(1, 12)
    returns = []
    for _ in range(updates):
        model.load_state_dict(shared_model.state_dict())
        hx, cx = hx.detach(), cx.detach()
        values, log_probs, rewards, entropies = [], [], [], []
        for _ in range(num_steps):
            state = torch.randn(1, 2)
            value, logit, hx, cx = model(state, hx, cx)
            prob, log_prob = F.softmax(logit, dim=-1), F.log_softmax(logit, dim=-1)
            entropies.append(-(log_prob * prob).sum(1, keepdim=True))
            action = prob.multinomial(num_samples=1).detach()
            values.append(value)
            log_probs.append(log_prob.gather(1, action))
            rewards.append(float((state[0, 0] > 0) == bool(action.item())))
        ret, policy_loss, value_loss = torch.zeros(1, 1), 0, 0
        for i in reversed(range(num_steps)):
            ret = 0.5 * ret + rewards[i]
            advantage = ret - values[i]
            value_loss = value_loss + 0.5 * advantage.pow(2)
            policy_loss = policy_loss - log_probs[i] * advantage.detach() - 0.01 * entropies[i]
        optimizer.zero_grad()
        (policy_loss + 0.5 * value_loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 50)
        ensure_shared_grads(model, shared_model)
        optimizer.step()
        model.zero_grad()
        returns.append(sum(rewards))
    print(sum(returns[:10]) / 60, sum(returns[-10:]) / 60)


torch.manual_seed(41)
shared = ActorCritic()
shared.share_memory()
worker = threading.Thread(target=train, args=(shared, optim.Adam(shared.parameters(), lr=0.01)))
worker.start()
worker.join()
