# A course exercise: the train function already steps, and the cell that calls it steps once more.
# source: callummcdougall/ARENA_3.0#224
# expect: double-step
import torch
from torch import Tensor, nn

torch.manual_seed(1)


class ToyAutoencoder(nn.Module):
    def __init__(self, n_features=10, d_hidden=4):
        super().__init__()
        self.W = nn.Parameter(torch.randn(d_hidden, n_features) * 0.3)
        self.b_final = nn.Parameter(torch.zeros(n_features))

    def forward(self, features: Tensor) -> Tensor:
        hidden = features @ self.W.T
        return torch.relu(hidden @ self.W + self.b_final)


def generate_batch(batch_size: int, feature_probability: float = 0.2) -> Tensor:
    feat = torch.rand(batch_size, 10)
    return feat * (torch.rand(batch_size, 10) <= feature_probability)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, importance: Tensor) -> float:
    batch = generate_batch(64)
    optimizer.zero_grad()
    loss = (importance * (model(batch) - batch) ** 2).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


model = ToyAutoencoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
importance = 0.9 ** torch.arange(10)
for step in range(20):
    loss = train(model, optimizer, importance)
    optimizer.step()  # <- double-step, cause
    if step % 5 == 0:
        print(f"step {step:2d} loss {loss:.5f}")
