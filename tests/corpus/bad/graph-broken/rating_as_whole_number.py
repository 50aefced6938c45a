# Ratings are whole numbers, so a recommender turns its predictions into whole numbers before it compares them.
# source: none (a common mistake, written small)
# expect: graph-broken
# raises: RuntimeError
import torch
from torch import nn


class Factors(nn.Module):
    def __init__(self, users, items, size=6):
        super().__init__()
        self.users, self.items = nn.Embedding(users, size), nn.Embedding(items, size)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(1) + 3


def train(model, ratings, epochs=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        for user, item, stars in ratings:
            guess = model(user, item)
            guess = guess.long()  # <- cause
            loss = nn.functional.mse_loss(guess.float(), stars.float())
            optimizer.zero_grad()
            loss.backward()  # <- graph-broken
            optimizer.step()


torch.manual_seed(2)
pairs = torch.randint(0, 20, (6, 2, 16))
train(Factors(20, 20), [(user, item, torch.randint(1, 6, (16,))) for user, item in pairs])
