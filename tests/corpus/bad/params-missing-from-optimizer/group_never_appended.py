# A named-entity tagger with parameter groups: the last group is filled with parameters, but not appended.
# source: zjunlp/HVPNeT#5
# expect: params-missing-from-optimizer
import torch
import torch.nn.functional as F
from torch import nn, optim


class VisualPrefixTagger(nn.Module):
    def __init__(self, vocab=40, dim=16, tags=4):
        super().__init__()
        self.bert = nn.Embedding(vocab, dim)
        self.encoder_conv = nn.Sequential(nn.Linear(6, dim), nn.Tanh())
        self.gates = nn.Linear(2 * dim, dim)
        self.fc = nn.Linear(dim, tags)
        self.crf_transitions = nn.Parameter(torch.zeros(tags, tags))

    def forward(self, ids, image):
        words, visual = self.bert(ids), self.encoder_conv(image).unsqueeze(1)
        hidden = torch.relu(self.gates(torch.cat([words, visual.expand_as(words)], dim=-1)))
        scores = self.fc(hidden)
        previous = F.pad(scores.softmax(-1)[:, :-1], (0, 0, 1, 0))
        return scores + previous @ self.crf_transitions


class NERTrainer:
    def __init__(self, model, lr=3e-3):
        self.model, self.lr = model, lr
        self.before_multimodal_train()

    def before_multimodal_train(self):
        parameters = []
        params = {"lr": self.lr, "weight_decay": 1e-2, "params": []}
        for name, param in self.model.named_parameters():
            if name.startswith(("bert", "encoder_conv", "gates")):
                params["params"].append(param)
        parameters.append(params)
        params = {"lr": 5e-2, "weight_decay": 1e-2, "params": []}  # <- cause
        for name, param in self.model.named_parameters():
            if "crf" in name or name.startswith("fc"):
                params["params"].append(param)  # <- cause
        self.optimizer = optim.AdamW(parameters)  # <- params-missing-from-optimizer, cause

    def train(self, batches):
        for step, (ids, image, tags) in enumerate(batches):
            loss = F.cross_entropy(self.model(ids, image).flatten(0, 1), tags.flatten())
            loss.backward()
            self.optimizer.step()
            self.model.zero_grad()
            if step % 5 == 0:
                print(f"step {step} loss {loss.item():.4f}")


torch.manual_seed(3)
tokens = torch.randint(0, 40, (15, 6, 7))
NERTrainer(VisualPrefixTagger()).train([(ids, torch.randn(6, 6), ids // 10) for ids in tokens])
