# A transformer classifier that evaluates from inside its training epoch every few steps and goes on in eval mode.
# source: asyml/texar-pytorch#310
# expect: eval-mode-left-on
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.optim import Adam

torch.manual_seed(2)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(30, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.out = nn.Linear(16, 2)

    def forward(self, ids):
        return self.out(self.layer(self.emb(ids)).mean(1))


def main(display_steps=4, max_epochs=2):
    model = Classifier()
    optim = Adam(model.parameters(), lr=1e-3)
    train_ids, eval_ids = torch.randint(0, 30, (96, 8)), torch.randint(0, 30, (32, 8))

    def label(ids):
        return (ids.float().mean(1) > 14.5).long()

    @torch.no_grad()
    def _eval_epoch():
        model.eval()  # <- eval-mode-left-on
        accuracy = (model(eval_ids).argmax(1) == label(eval_ids)).float().mean().item()
        print(f"eval accu: {accuracy:.4f}")  # <- cause

    def _train_epoch():
        model.train()  # <- cause
        for step, ids in enumerate(train_ids[torch.randperm(96)].split(8), start=1):
            optim.zero_grad()  # <- cause
            loss = nn.functional.cross_entropy(model(ids), label(ids))
            loss.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            optim.step()
            if step % display_steps == 0:
                print(f"step: {step}; loss: {loss.item():.4f}")
                _eval_epoch()  # <- cause

    for _ in range(max_epochs):
        _train_epoch()


main()
