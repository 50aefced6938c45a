# TransE keeps its entities on the unit sphere by assigning a new tensor to weight.data before each batch.
# source: uma-pi1/kge#119
# expect: data-write-in-loop
# severity: hint (the constraint is meant; copy_() under no_grad would be seen)
# missed: the function that writes is called through a list of hooks
import torch
import torch.nn.functional as F
from torch import nn


class LookupEmbedder(nn.Module):
    def __init__(self, vocab_size, dim=12):
        super().__init__()
        self._embeddings = nn.Embedding(vocab_size, dim)

    def forward(self, indexes):
        return self._embeddings(indexes)

    def normalize_embeddings(self):
        weight = self._embeddings.weight
        weight.data = F.normalize(weight.detach(), dim=-1)  # <- data-write-in-loop, cause


class TransE(nn.Module):
    def __init__(self, entities, relations):
        super().__init__()
        self.entity, self.relation = LookupEmbedder(entities), LookupEmbedder(relations)

    def score(self, triples):
        s, p, o = triples.unbind(1)
        return -(self.entity(s) + self.relation(p) - self.entity(o)).norm(p=1, dim=1)


class TrainingJob:
    def __init__(self, model, triples, margin=1.0):
        self.model, self.triples, self.margin = model, triples, margin
        self.optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
        self.pre_batch_hooks = [model.entity.normalize_embeddings]

    def run_epoch(self):
        total = 0.0
        for idx in torch.randperm(len(self.triples)).split(25):
            for hook in self.pre_batch_hooks:
                hook()
            positive = self.triples[idx]
            negative = positive.clone()
            negative[:, 2] = torch.randint(0, 30, (len(idx),))
            loss = F.relu(self.margin - self.model.score(positive) + self.model.score(negative)).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total


torch.manual_seed(8)
subjects, predicates = torch.randint(0, 30, (100,)), torch.randint(0, 3, (100,))
job = TrainingJob(TransE(30, 3), torch.stack([subjects, predicates, (subjects + predicates + 1) % 30], dim=1))
for epoch in range(4):
    print(epoch, job.run_epoch())
