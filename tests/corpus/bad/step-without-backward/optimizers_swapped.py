# Controlled text generation: the trainers of encoder and generator were created with one another's parameters.
# source: wiseodd/controlled-text-generation#15
# expect: step-without-backward
# missed: it is told as zero-grad-between-backward-and-step, which is true as well
import torch
import torch.nn.functional as F
from torch import nn, optim


class TextModel(nn.Module):
    def __init__(self, vocab=16, dim=12):
        super().__init__()
        self.encoder = nn.Sequential(nn.EmbeddingBag(vocab, dim), nn.Linear(dim, dim), nn.Tanh(), nn.Linear(dim, 3))
        self.generator = nn.Sequential(nn.Linear(3, dim), nn.ReLU(), nn.Linear(dim, vocab))

    def loss_generator(self, codes, words):
        return F.cross_entropy(self.generator(codes), words)

    def loss_encoder(self, sentences, codes):
        return F.mse_loss(self.encoder(sentences), codes)


def train_step(trainer, loss):
    trainer.zero_grad()
    loss.backward()
    trainer.step()  # <- step-without-backward
    return loss.item()


torch.manual_seed(16)
model = TextModel()
trainer_g = optim.Adam(model.encoder.parameters(), lr=5e-3)  # <- cause
trainer_e = optim.Adam(model.generator.parameters(), lr=5e-3)  # <- cause
for it in range(20):
    sentences = torch.randint(0, 16, (24, 5))
    codes = torch.stack([(sentences == k).float().sum(1) for k in range(3)], dim=1)
    loss_g = train_step(trainer_g, model.loss_generator(codes, sentences[:, 0]))  # <- cause
    loss_e = train_step(trainer_e, model.loss_encoder(sentences, codes))  # <- cause
    if it % 5 == 0:
        print(f"Iter-{it}; loss_G: {loss_g:.4f}; loss_E: {loss_e:.4f}")
