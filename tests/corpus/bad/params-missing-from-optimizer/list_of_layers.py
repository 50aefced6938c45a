# A sentence classifier whose hidden layers sit in a plain Python list, so that parameters() does not see them.
# source: pytorch/pytorch#715
# expect: params-missing-from-optimizer
import torch
from torch import nn
from torch.optim import Adagrad

torch.manual_seed(0)
options = {"n_in": 20, "n_hid": 16, "n_layers": 2}


class SNLINet(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.emb = nn.EmbeddingBag(40, options["n_in"])
        self.hids = []  # <- cause
        indim = options["n_in"]
        for _ in range(options["n_layers"]):
            self.hids.append(nn.Linear(indim, options["n_hid"]))  # <- cause
            indim = options["n_hid"]
        self.classifier = nn.Linear(options["n_hid"], 3)

    def forward(self, x):
        x = self.emb(x)
        for layer in self.hids:
            x = torch.tanh(layer(x))
        return self.classifier(x)


net = SNLINet(options)
optimizer = Adagrad(net.parameters(), lr=0.05)  # <- params-missing-from-optimizer
criterion = nn.CrossEntropyLoss()
sentences = torch.randint(0, 40, (64, 9))
labels = sentences.sum(1) % 3

for epoch in range(4):
    for batch in torch.arange(64).split(16):
        optimizer.zero_grad()
        loss = criterion(net(sentences[batch]), labels[batch])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
