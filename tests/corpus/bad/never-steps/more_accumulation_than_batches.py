# A fine-tuning script on few examples: each epoch has fewer batches than a window, so the condition is never met.
# source: huggingface/transformers#2995
# expect: never-steps
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset


class SequenceClassifier(nn.Module):
    def __init__(self, vocab=40, dim=16):
        super().__init__()
        self.embeddings = nn.EmbeddingBag(vocab, dim)
        self.pooler, self.dropout, self.classifier = nn.Linear(dim, dim), nn.Dropout(0.1), nn.Linear(dim, 2)

    def forward(self, input_ids, labels):
        logits = self.classifier(self.dropout(torch.tanh(self.pooler(self.embeddings(input_ids)))))
        return nn.functional.cross_entropy(logits, labels), logits


def train(args, train_dataset, model):
    train_dataloader = DataLoader(train_dataset, sampler=RandomSampler(train_dataset), batch_size=args.train_batch_size)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate, eps=1e-8)
    global_step, tr_loss = 0, 0.0
    for epoch in range(args.num_train_epochs):
        model.zero_grad()
        for step, (input_ids, labels) in enumerate(train_dataloader):
            model.train()
            loss, _ = model(input_ids, labels)
            loss = loss / args.gradient_accumulation_steps
            loss.backward()  # <- never-steps
            tr_loss += loss.item()
            if (step + 1) % args.gradient_accumulation_steps == 0:  # <- cause
                nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)
                optimizer.step()
                model.zero_grad()
                global_step += 1
        print(f"epoch {epoch}: {len(train_dataloader)} batches, global step {global_step}, loss {tr_loss:.4f}")


parser = argparse.ArgumentParser()
parser.add_argument("--train_batch_size", type=int, default=8)
parser.add_argument("--gradient_accumulation_steps", type=int, default=16)  # <- cause
parser.add_argument("--learning_rate", type=float, default=5e-3)
parser.add_argument("--max_grad_norm", type=float, default=1.0)
parser.add_argument("--num_train_epochs", type=int, default=3)
torch.manual_seed(42)
reviews = torch.randint(0, 40, (60, 10))
train(parser.parse_args([]), TensorDataset(reviews, (reviews[:, 0] > 20).long()), SequenceClassifier())
