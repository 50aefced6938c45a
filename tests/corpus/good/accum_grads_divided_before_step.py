# Losses are sums over tokens; after the window the gradients themselves are scaled by one over its number of tokens.
# source: meta-pytorch/torchtune#1917 (training.scale_grads)
import torch
from torch import nn


def scale_grads(model, scaler):
    for p in model.parameters():
        if p.grad is not None:
            p.grad *= scaler


class Recipe:
    def __init__(self, seed=68):
        torch.manual_seed(seed)
        self._model = nn.Sequential(nn.Embedding(20, 16), nn.Linear(16, 20))
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=2e-2, fused=True)
        self._loss_fn = nn.CrossEntropyLoss(reduction="sum", ignore_index=-100)
        self._gradient_accumulation_steps = 3
        self.global_step = 0

    def _batches(self):
        for _ in range(12):
            tokens = torch.randint(0, 20, (4, 10))
            labels = (tokens + 3) % 20
            labels[torch.arange(10).repeat(4, 1) >= torch.randint(2, 11, (4, 1))] = -100
            yield tokens, labels

    def train(self, epochs):
        self._optimizer.zero_grad()
        for _epoch in range(epochs):
            running_loss, num_tokens = 0, 0
            for idx, (tokens, labels) in enumerate(self._batches()):
                num_tokens += (labels != -100).sum()
                logits = self._model(tokens)
                current_loss = self._loss_fn(logits.transpose(1, 2), labels)
                running_loss += current_loss.detach()
                current_loss.backward()
                if (idx + 1) % self._gradient_accumulation_steps == 0:
                    scale_grads(self._model, 1 / num_tokens)
                    self._optimizer.step()
                    self._optimizer.zero_grad(set_to_none=True)
                    self.global_step += 1
                    loss_to_log = running_loss.item() / num_tokens.item()
                    running_loss, num_tokens = 0, 0
            print(f"{self.global_step} | Loss: {loss_to_log:.4f}")


if __name__ == "__main__":
    Recipe().train(epochs=4)
