# stable-baselines3: PPO on CartPole.
import hashlib

import torch
from stable_baselines3 import PPO

torch.manual_seed(0)
model = PPO("MlpPolicy", "CartPole-v1", n_steps=128, batch_size=64, n_epochs=4, seed=0, device="cpu")
model.learn(1024)
weights = b"".join(value.numpy().tobytes() for value in model.policy.state_dict().values())
print("digest:", hashlib.sha256(weights).hexdigest())
