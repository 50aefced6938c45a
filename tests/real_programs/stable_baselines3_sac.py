# stable-baselines3: SAC on Pendulum: an actor, two critics, their targets, and a learned temperature.
import hashlib

from stable_baselines3 import SAC

model = SAC("MlpPolicy", "Pendulum-v1", learning_starts=100, batch_size=64, seed=0, device="cpu")
model.learn(260)
weights = b"".join(value.numpy().tobytes() for value in model.policy.state_dict().values())
print("digest:", hashlib.sha256(weights).hexdigest())
