# The HuggingFace Trainer: a small BERT, gradients accumulated over windows of 4, evaluation, a warmed-up schedule.
import hashlib
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed


class Sentences(Dataset):
    def __init__(self, count):
        self.ids = torch.randint(0, 50, (count, 10))

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        ids = self.ids[index]
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": (ids.float().mean() > 25).long()}


def main():
    set_seed(0)
    config = BertConfig(
        vocab_size=50,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=16,
        num_labels=2,
    )
    model = BertForSequenceClassification(config)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=3,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=4,
            eval_strategy="epoch",
            save_strategy="no",
            learning_rate=1e-3,
            warmup_steps=2,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        Trainer(model, arguments, train_dataset=Sentences(200), eval_dataset=Sentences(64)).train()
    weights = b"".join(value.detach().numpy().tobytes() for value in model.parameters())
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
