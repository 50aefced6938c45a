# Seven batches an epoch, windows of four, an index that restarts: the last three leak into the next first window.
# source: meta-pytorch/torchtune#2745
# expect: last-accumulation-window-dropped
import torch
import torch.nn.functional as F
from torch import nn


class Recipe:
    def __init__(self):
        torch.manual_seed(11)
        self._gradient_accumulation_steps = 4
        self._model = nn.Sequential(nn.Embedding(40, 24), nn.Linear(24, 24), nn.GELU(), nn.Linear(24, 40))
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-3, fused=False)
        self._dataloader = torch.utils.data.DataLoader(torch.randint(0, 40, (28, 9)), batch_size=4)
        self.global_step = 0

    def _loss_step(self, batch):
        logits = self._model(batch[:, :-1])
        return F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())

    def train(self, total_epochs=9):
        self._optimizer.zero_grad()
        for curr_epoch in range(total_epochs):
            for idx, batch in enumerate(self._dataloader):
                current_loss = self._loss_step(batch) / self._gradient_accumulation_steps
                current_loss.backward()
                if (idx + 1) % self._gradient_accumulation_steps == 0:  # <- cause
                    self._optimizer.step()  # <- last-accumulation-window-dropped
                    self._optimizer.zero_grad(set_to_none=True)
                    self.global_step += 1
            print(f"{curr_epoch + 1}|{self.global_step}|Loss: {current_loss.item():.4f}")  # <- cause


Recipe().train()
