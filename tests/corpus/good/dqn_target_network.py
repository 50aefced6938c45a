# DQN: actions are chosen under no_grad by a network in train mode, the target network moves by a soft update through
# state dicts, gradients are clipped by value, and nothing happens until the memory is full enough.
# source: pytorch/tutorials intermediate_source/reinforcement_q_learning.py
import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.optim as optim

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
BATCH_SIZE, GAMMA, TAU, SIZE = 32, 0.9, 0.05, 7
random.seed(61)
torch.manual_seed(61)


def dqn():
    return nn.Sequential(nn.Linear(SIZE, 32), nn.ReLU(), nn.Linear(32, 2))


policy_net, target_net = dqn(), dqn()
target_net.load_state_dict(policy_net.state_dict())
optimizer = optim.AdamW(policy_net.parameters(), lr=5e-3, amsgrad=True)
memory = deque(maxlen=1000)


def select_action(state, eps):
    if random.random() > eps:
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(2)]], dtype=torch.long)


def optimize_model():
    if len(memory) < BATCH_SIZE:
        return
    batch = Transition(*zip(*random.sample(memory, BATCH_SIZE), strict=True))
    non_final_mask = torch.tensor([s is not None for s in batch.next_state])
    state_action_values = policy_net(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
    next_state_values = torch.zeros(BATCH_SIZE)
    with torch.no_grad():
        non_final = torch.cat([s for s in batch.next_state if s is not None])
        next_state_values[non_final_mask] = target_net(non_final).max(1).values
    expected = (next_state_values * GAMMA) + torch.cat(batch.reward)
    loss = nn.SmoothL1Loss()(state_action_values, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()


lengths = []
for episode in range(30):
    position = SIZE // 2
    for _t in range(25):
        state = torch.eye(SIZE)[position : position + 1]
        action = select_action(state, eps=max(0.1, 1 - episode / 15))
        position += 1 if action.item() == 1 else -1
        done = position in (0, SIZE - 1)
        next_state = None if done else torch.eye(SIZE)[position : position + 1]
        memory.append(Transition(state, action, next_state, torch.tensor([1.0 if position == SIZE - 1 else -0.1])))
        optimize_model()
        target_dict, policy_dict = target_net.state_dict(), policy_net.state_dict()
        for key in policy_dict:
            target_dict[key] = policy_dict[key] * TAU + target_dict[key] * (1 - TAU)
        target_net.load_state_dict(target_dict)
        if done:
            break
    lengths.append(position if done else -1)
print(lengths)
