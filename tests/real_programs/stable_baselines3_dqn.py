# stable-baselines3: DQN on CartPole, with a target network that no optimizer holds.
import hashlib

from stable_baselines3 import DQN

model = DQN(
    "MlpPolicy",
    "CartPole-v1",
    learning_starts=200,
    train_freq=4,
    gradient_steps=2,
    target_update_interval=100,
    seed=0,
    device="cpu",
)
model.learn(1200)
weights = b"".join(value.numpy().tobytes() for value in model.policy.state_dict().values())
print("digest:", hashlib.sha256(weights).hexdigest())
