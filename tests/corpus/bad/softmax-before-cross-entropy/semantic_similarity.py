# A deep semantic similarity model: the relevance of one clicked and three other documents passes nn.Softmax on its way.
# source: nishnik/Deep-Semantic-Similarity-Model-PyTorch#2
# expect: softmax-before-cross-entropy
import torch
from torch import nn

torch.manual_seed(3)
WORD_DEPTH, J, L = 30, 3, 8


class CDSSM(nn.Module):
    def __init__(self, k=12):
        super().__init__()
        self.query = nn.Sequential(nn.Linear(WORD_DEPTH, k), nn.Tanh(), nn.Linear(k, L), nn.Tanh())
        self.doc = nn.Sequential(nn.Linear(WORD_DEPTH, k), nn.Tanh(), nn.Linear(k, L), nn.Tanh())
        self.learn_gamma = nn.Conv1d(1, 1, 1)
        self.prob = nn.Softmax(dim=1)

    def forward(self, q, docs):
        relevance = torch.cosine_similarity(self.query(q).unsqueeze(1), self.doc(docs), dim=2)
        with_gamma = self.learn_gamma(relevance.unsqueeze(1)).squeeze(1)
        return self.prob(with_gamma)  # <- cause


model = CDSSM()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

queries = torch.rand(64, WORD_DEPTH)
clicked = queries.roll(1, dims=1) + 0.1 * torch.rand(64, WORD_DEPTH)
for epoch in range(4):
    for i in range(0, 64, 16):
        q, pos = queries[i : i + 16], clicked[i : i + 16]
        negs = clicked[torch.randint(64, (16, J))]
        prob = model(q, torch.cat([pos.unsqueeze(1), negs], dim=1))
        target = torch.zeros(16, dtype=torch.long)
        loss = criterion(prob, target)  # <- softmax-before-cross-entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
