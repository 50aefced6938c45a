# torch-geometric: a GCN on one graph, a mask for training and one for validation, the patience of its examples.
import hashlib

import torch
from torch.nn import functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv


class GCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(8, 16), GCNConv(16, 3)

    def forward(self, x, edge_index):
        x = F.dropout(x, 0.3, training=self.training)
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, 0.3, training=self.training)
        return self.conv2(x, edge_index)


def main():
    torch.manual_seed(0)
    x = torch.randn(100, 8)
    data = Data(x=x, y=x[:, :3].argmax(1), edge_index=torch.randint(0, 100, (2, 300)))
    train_mask = torch.rand(100) < 0.6
    model = GCN()
    groups = [
        {"params": model.conv1.parameters(), "weight_decay": 5e-4},
        {"params": model.conv2.parameters(), "weight_decay": 0},
    ]
    optimizer = torch.optim.Adam(groups, lr=0.01)
    best = 0.0
    for _ in range(30):
        model.train()
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        loss = F.cross_entropy(out[train_mask], data.y[train_mask])
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            predicted = model(data.x, data.edge_index).argmax(1)
        best = max(best, (predicted == data.y)[~train_mask].float().mean().item())
    print(f"best {best:.2f}")
    weights = b"".join(value.numpy().tobytes() for value in model.state_dict().values())
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
