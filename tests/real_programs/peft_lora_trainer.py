# LoRA on a small GPT-2 with the Trainer and accumulation: at first every gradient of A is exactly 0, since B is 0.
import hashlib
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed


class Texts(Dataset):
    def __init__(self, count):
        start = torch.randint(0, 40, (count, 1))
        self.ids = (start + torch.arange(12)) % 40

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, index):
        return {"input_ids": self.ids[index], "labels": self.ids[index]}


def main():
    set_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=40, n_positions=16, n_embd=32, n_layer=2, n_head=2))
    lora = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.1, target_modules=["c_attn"], task_type="CAUSAL_LM")
    model = get_peft_model(model, lora)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            num_train_epochs=3,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=3,
            save_strategy="no",
            learning_rate=1e-2,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
        )
        Trainer(model, arguments, train_dataset=Texts(80)).train()
    weights = b"".join(value.detach().numpy().tobytes() for value in model.parameters())
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
