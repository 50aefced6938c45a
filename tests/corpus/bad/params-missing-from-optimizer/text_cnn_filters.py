# A sentence CNN whose convolutions of three widths are kept in a list, so the optimizer only gets the other layers.
# source: pytorch/pytorch#1053
# expect: params-missing-from-optimizer
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class ConvFeatures(nn.Module):
    def __init__(self, word_vec_size, n_filters, widths=(3, 4, 5)):
        super().__init__()
        self.conv1d = [nn.Conv1d(word_vec_size, n_filters, width) for width in widths]  # <- cause

    def forward(self, x):
        return torch.cat([F.relu(conv(x)).amax(dim=2) for conv in self.conv1d], dim=1)


class Net(nn.Module):
    def __init__(self, vocab=60, word_vec_size=10, n_filters=6, classes=2):
        super().__init__()
        self.embedding = nn.Embedding(vocab, word_vec_size)
        self.features = ConvFeatures(word_vec_size, n_filters)
        self.dropout, self.classifier = nn.Dropout(0.2), nn.Linear(3 * n_filters, classes)

    def forward(self, tokens):
        words = self.embedding(tokens).transpose(1, 2)
        return self.classifier(self.dropout(self.features(words)))


def run(config):
    torch.manual_seed(config["seed"])
    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=config["lr"])  # <- params-missing-from-optimizer
    sentences = torch.randint(0, 60, (80, 12))
    loader = DataLoader(TensorDataset(sentences, (sentences[:, 3] > 30).long()), batch_size=16, shuffle=True)
    for epoch in range(config["epochs"]):
        total = 0.0
        for tokens, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(tokens), labels)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} loss {total / len(loader):.4f}")


run({"seed": 1, "lr": 1.0, "epochs": 3})
