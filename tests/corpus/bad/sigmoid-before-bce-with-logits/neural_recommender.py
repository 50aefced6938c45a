# Neural collaborative filtering: forward() ends in a sigmoid, and the recommender trains with BCEWithLogitsLoss.
# source: yudi-mars/daisyRec#15
# expect: sigmoid-before-bce-with-logits
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class NeuMF(nn.Module):
    def __init__(self, user_num, item_num, factors=8, num_layers=2):
        super().__init__()
        self.embed_user_gmf, self.embed_item_gmf = nn.Embedding(user_num, factors), nn.Embedding(item_num, factors)
        self.embed_user_mlp, self.embed_item_mlp = nn.Embedding(user_num, factors), nn.Embedding(item_num, factors)
        layers, size = [], 2 * factors
        for _ in range(num_layers):
            layers += [nn.Linear(size, size // 2), nn.ReLU()]
            size //= 2
        self.mlp_layers = nn.Sequential(*layers)
        self.predict_layer = nn.Linear(factors + size, 1)
        self.criterion = nn.BCEWithLogitsLoss(reduction="sum")  # <- cause
        self.optimizer = torch.optim.Adam(self.parameters(), lr=5e-3)

    def forward(self, user, item):
        gmf = self.embed_user_gmf(user) * self.embed_item_gmf(item)
        mlp = self.mlp_layers(torch.cat((self.embed_user_mlp(user), self.embed_item_mlp(item)), dim=-1))
        pred = self.predict_layer(torch.cat((gmf, mlp), -1))
        return torch.sigmoid(pred).view(-1)  # <- cause

    def calc_loss(self, batch):
        user, item, label = batch
        return self.criterion(self.forward(user, item), label)  # <- sigmoid-before-bce-with-logits

    def fit(self, train_loader, epochs=3):
        self.train()
        for epoch in range(1, epochs + 1):
            current_loss = 0.0
            for batch in train_loader:
                self.zero_grad()
                loss = self.calc_loss(batch)
                loss.backward()
                self.optimizer.step()
                current_loss += loss.item()
            print(f"[Epoch {epoch:03d}] train loss {current_loss:.4f}")


torch.manual_seed(2022)
users, items = torch.randint(0, 20, (200,)), torch.randint(0, 30, (200,))
clicks = ((users + items) % 3 == 0).float()
NeuMF(20, 30).fit(DataLoader(TensorDataset(users, items, clicks), batch_size=40, shuffle=True))
