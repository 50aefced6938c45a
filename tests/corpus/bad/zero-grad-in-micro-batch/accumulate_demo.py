# A text classifier on embeddings that accumulates two batches and calls zero_grad at the top of each iteration.
# source: huggingface/accelerate#1299
# expect: zero-grad-in-micro-batch
import torch
from torch import nn
from torch.optim import SGD
from torch.utils.data import DataLoader, Dataset


class Bags(Dataset):
    def __init__(self, n=64):
        generator = torch.Generator().manual_seed(9)
        self.tokens = torch.randint(0, 50, (n, 10), generator=generator)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return self.tokens[i], (self.tokens[i] < 10).sum() % 2


if __name__ == "__main__":
    torch.manual_seed(9)
    model = nn.Sequential(nn.EmbeddingBag(50, 16, mode="mean"), nn.ReLU(), nn.Linear(16, 2))
    optimizer = SGD(model.parameters(), lr=0.5, momentum=0.9, nesterov=True)
    loss_function = nn.CrossEntropyLoss()
    training_dataloader = DataLoader(Bags(), batch_size=4, num_workers=1)
    gradient_accumulation_steps = 2

    for epoch in range(2):
        for index, batch in enumerate(training_dataloader):
            optimizer.zero_grad(set_to_none=False)  # <- zero-grad-in-micro-batch, cause
            inputs, targets = batch
            outputs = model(inputs)
            loss = loss_function(outputs, targets)
            loss = loss / gradient_accumulation_steps
            loss.backward()
            if (index + 1) % gradient_accumulation_steps == 0:
                optimizer.step()
        print(f"epoch {epoch}: {loss.item() * gradient_accumulation_steps:.4f}")
