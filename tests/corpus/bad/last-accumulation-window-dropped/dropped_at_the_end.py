# One pass over 38 batches with windows of four: the last two batches never reach an update.
# source: timoschick/pet#36
# expect: last-accumulation-window-dropped
# severity: hint (some stop after a number of steps on purpose)
import torch
from torch import nn
from torch.optim import AdamW
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

torch.manual_seed(12)


class Wrapper:
    def __init__(self):
        self.model = nn.LSTM(8, 12, batch_first=True)
        self.head = nn.Linear(12, 2)

    def mlm_train_step(self, batch):
        x, y = batch
        out, _ = self.model(x)
        return nn.functional.cross_entropy(self.head(out.mean(1)), y)

    def train(self, data, num_train_epochs=1, gradient_accumulation_steps=4, max_grad_norm=1.0):
        dataloader = DataLoader(data, sampler=RandomSampler(data), batch_size=4)
        params = [*self.model.parameters(), *self.head.parameters()]
        optimizer = AdamW(params, lr=1e-3, eps=1e-8)
        step, global_step, tr_loss = 0, 0, 0.0
        for _ in range(num_train_epochs):
            for batch in dataloader:
                loss = self.mlm_train_step(batch)
                if gradient_accumulation_steps > 1:
                    loss = loss / gradient_accumulation_steps
                loss.backward()
                tr_loss += loss.item()
                if (step + 1) % gradient_accumulation_steps == 0:  # <- cause
                    torch.nn.utils.clip_grad_norm_(params, max_grad_norm)
                    optimizer.step()  # <- last-accumulation-window-dropped
                    optimizer.zero_grad()
                    global_step += 1
                step += 1
        return global_step, tr_loss / global_step  # <- cause


x = torch.randn(152, 5, 8)
print(Wrapper().train(TensorDataset(x, (x.sum((1, 2)) > 0).long())))
