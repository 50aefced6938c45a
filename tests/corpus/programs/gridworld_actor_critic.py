# Reinforcement learning in a gridworld of its own: advantage actor-critic, generalised advantages, several epochs of
# clipped updates over each rollout, a frozen snapshot to measure the change, greedy evaluation, a checkpoint.
# source: vwxyzjn/cleanrl cleanrl/ppo.py, ikostrikov/pytorch-a2c-ppo-acktr-gail a2c_ppo_acktr/algo/ppo.py
import argparse
import copy
import hashlib
import os
import tempfile
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical, kl_divergence
from torch.optim import Adam

MOVES = torch.tensor([[0, 1], [0, -1], [1, 0], [-1, 0]])


class GridWorld:
    """Many grids at once: walk to the goal, -0.05 a step, +1 at the goal, a pit at -1."""

    def __init__(self, n_envs, size=5, limit=20):
        self.n, self.size, self.limit = n_envs, size, limit
        self.goal, self.pit = torch.tensor([size - 1, size - 1]), torch.tensor([2, 2])
        self.position = torch.zeros(n_envs, 2, dtype=torch.long)
        self.steps = torch.zeros(n_envs, dtype=torch.long)

    def observe(self):
        rows = F.one_hot(self.position[:, 0], self.size)
        return torch.cat([rows, F.one_hot(self.position[:, 1], self.size)], 1).float()

    def step(self, action):
        self.position = (self.position + MOVES[action]).clamp(0, self.size - 1)
        self.steps += 1
        at_goal = (self.position == self.goal).all(1)
        in_pit = (self.position == self.pit).all(1)
        reward = at_goal.float() - in_pit.float() - 0.05
        done = at_goal | in_pit | (self.steps >= self.limit)
        self.position[done] = 0
        self.steps[done] = 0
        return self.observe(), reward, done.float()


class ActorCritic(nn.Module):
    def __init__(self, n_inputs, n_actions):
        super().__init__()
        self.base = nn.Sequential(nn.Linear(n_inputs, 48), nn.Tanh())
        self.actor, self.critic = nn.Linear(48, n_actions), nn.Linear(48, 1)

    def forward(self, x):
        h = self.base(x)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


@dataclass
class Rollout:
    obs: torch.Tensor
    actions: torch.Tensor
    log_probs: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor


def collect(env, model, obs, n_steps, gamma, lam):
    store = {k: [] for k in ("obs", "actions", "log_probs", "values", "rewards", "dones")}
    with torch.no_grad():
        for _ in range(n_steps):
            dist, value = model(obs)
            action = dist.sample()
            nxt, reward, done = env.step(action)
            for k, v in zip(store, (obs, action, dist.log_prob(action), value, reward, done), strict=True):
                store[k].append(v)
            obs = nxt
        _, last_value = model(obs)
    advantage, advantages = torch.zeros(env.n), []
    for t in reversed(range(n_steps)):
        alive = 1 - store["dones"][t]
        next_value = last_value if t == n_steps - 1 else store["values"][t + 1]
        delta = store["rewards"][t] + gamma * next_value * alive - store["values"][t]
        advantage = delta + gamma * lam * alive * advantage
        advantages.insert(0, advantage)
    advantages = torch.cat(advantages)
    returns = advantages + torch.cat(store["values"])
    rollout = Rollout(*(torch.cat(store[k]) for k in ("obs", "actions", "log_probs")), advantages, returns)
    return rollout, obs, torch.cat(store["rewards"]).mean().item()


def update(model, optimizer, rollout, epochs, minibatch, clip):
    for _ in range(epochs):
        for rows in torch.randperm(len(rollout.actions)).split(minibatch):
            dist, value = model(rollout.obs[rows])
            ratio = (dist.log_prob(rollout.actions[rows]) - rollout.log_probs[rows]).exp()
            adv = rollout.advantages[rows]
            adv = (adv - adv.mean()) / (adv.std() + 1e-8)
            policy_loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
            value_loss = F.mse_loss(value, rollout.returns[rows])
            loss = policy_loss + 0.5 * value_loss - 0.01 * dist.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
    return loss.item()


@torch.inference_mode()
def evaluate(model):
    env, total = GridWorld(1), 0.0
    obs = env.observe()
    for _ in range(env.limit):
        obs, reward, done = env.step(model(obs)[0].probs.argmax(1))
        total += reward.item()
        if done.item():
            break
    return total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=25)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    env, model = GridWorld(16), ActorCritic(10, 4)
    optimizer = Adam(model.parameters(), lr=5e-3)
    obs = env.observe()
    with tempfile.TemporaryDirectory() as folder:
        for i in range(args.updates):
            optimizer.param_groups[0]["lr"] = 5e-3 * (1 - i / args.updates)
            snapshot = copy.deepcopy(model).requires_grad_(False)
            rollout, obs, reward = collect(env, model, obs, n_steps=24, gamma=0.95, lam=0.9)
            loss = update(model, optimizer, rollout, epochs=3, minibatch=96, clip=0.2)
            if i % 6 == 0:
                with torch.no_grad():
                    kl = kl_divergence(snapshot(rollout.obs)[0], model(rollout.obs)[0]).mean()
                print(f"{i} reward {reward:.3f} loss {loss:.3f} kl {kl:.4f} greedy {evaluate(model):.2f}")
        torch.save({"model": model.state_dict(), "opt": optimizer.state_dict()}, os.path.join(folder, "policy.pt"))
    print("greedy return", round(evaluate(model), 2))
    print("digest:", hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())


if __name__ == "__main__":
    main()
