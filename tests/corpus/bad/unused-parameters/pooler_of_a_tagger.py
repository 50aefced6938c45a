# A tagger on top of a small transformer that has a pooler for sentences, which tagging never calls.
# source: huggingface/transformers models/bert/modeling_bert.py, BertForTokenClassification with the pooler
# expect: unused-parameters
# severity: hint (the pooler belongs to the pretrained model)
# cause: none (the pooler belongs to the pretrained model)
import torch
from torch import nn


class BertModel(nn.Module):
    def __init__(self, vocab=30, hidden=16):
        super().__init__()
        self.embeddings = nn.Embedding(vocab, hidden)
        self.encoder = nn.TransformerEncoderLayer(hidden, 2, 32, dropout=0.0, batch_first=True)
        self.pooler = nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh())

    def forward(self, input_ids):
        return self.encoder(self.embeddings(input_ids))


class TokenClassifier(nn.Module):
    def __init__(self, num_labels=3):
        super().__init__()
        self.bert, self.classifier = BertModel(), nn.Linear(16, num_labels)

    def forward(self, input_ids):
        return self.classifier(self.bert(input_ids))


torch.manual_seed(14)
model = TokenClassifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
tokens = torch.randint(0, 30, (40, 7))
for epoch in range(3):
    for batch in tokens.split(10):
        logits = model(batch)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), (batch // 10).flatten())
        loss.backward()  # <- unused-parameters
        optimizer.step()
        optimizer.zero_grad()
    print(epoch, loss.item())
