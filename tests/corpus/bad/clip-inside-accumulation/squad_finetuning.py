# Fine-tuning with accumulation where clip_grad_norm_ follows every backward instead of preceding every step.
# source: huggingface/transformers#1563
# expect: clip-inside-accumulation
import argparse

import torch
from torch import nn
from torch.optim import AdamW
from torch.utils.data import DataLoader, SequentialSampler, TensorDataset

torch.manual_seed(0)
args = argparse.Namespace(gradient_accumulation_steps=4, max_grad_norm=0.2, num_train_epochs=3, learning_rate=5e-4)


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.embeddings = nn.Embedding(40, 16)
        self.encoder = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, batch_first=True)
        self.qa_outputs = nn.Linear(16, 2)

    def forward(self, input_ids, start, end):
        logits = self.qa_outputs(self.encoder(self.embeddings(input_ids)))
        ce = nn.functional.cross_entropy
        return (ce(logits[..., 0], start) + ce(logits[..., 1], end)) / 2


def train(args, train_dataset, model):
    loader = DataLoader(train_dataset, sampler=SequentialSampler(train_dataset), batch_size=4)
    optimizer = AdamW(model.parameters(), lr=args.learning_rate, eps=1e-8)
    tr_loss = 0.0
    model.zero_grad()
    for epoch in range(args.num_train_epochs):
        model.train()
        for step, batch in enumerate(loader):
            loss = model(*batch)
            if args.gradient_accumulation_steps > 1:
                loss = loss / args.gradient_accumulation_steps
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)  # <- clip-inside-accumulation, cause
            tr_loss += loss.item()
            if (step + 1) % args.gradient_accumulation_steps == 0:
                optimizer.step()
                model.zero_grad()
        print(f"epoch {epoch} mean loss {tr_loss / (epoch + 1) / 3:.4f}")


ids = torch.randint(0, 40, (48, 8))
train(args, TensorDataset(ids, ids.argmax(1), ids.argmin(1)), Bert())
