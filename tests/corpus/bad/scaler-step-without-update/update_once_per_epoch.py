# A contrastive model whose trainer calls scaler.update() at the end of the epoch instead of after each step.
# source: a common pattern; documented in https://docs.pytorch.org/docs/stable/amp.html#torch.cuda.amp.GradScaler.step
# expect: scaler-step-without-update
# raises: RuntimeError
import torch
from torch import nn
from torch.amp import GradScaler, autocast
from torch.optim import AdamW


class ContrastiveTrainer:
    def __init__(self, dim=10, tau=0.2):
        self.image = nn.Sequential(nn.Linear(dim, 24), nn.ReLU(), nn.Linear(24, 8))
        self.text = nn.EmbeddingBag(20, 8)
        self.tau = tau
        self.opt = AdamW([*self.image.parameters(), *self.text.parameters()], lr=2e-3)
        self.scaler = GradScaler(device="cpu", init_scale=2.0**10)

    def loss(self, img, txt):
        with autocast("cpu", dtype=torch.float16):
            a = self.image(img).float()
        b = self.text(txt)
        sim = nn.functional.normalize(a, dim=1) @ nn.functional.normalize(b, dim=1).T / self.tau
        return nn.functional.cross_entropy(sim, torch.arange(len(img)))

    def run_epoch(self, img, txt):
        for idx in torch.randperm(len(img)).split(8):
            self.opt.zero_grad(set_to_none=True)
            loss = self.loss(img[idx], txt[idx])
            self.scaler.scale(loss).backward()
            self.scaler.step(self.opt)  # <- scaler-step-without-update, cause
            print(f"{loss.item():.4f}")
        self.scaler.update()  # <- cause


torch.manual_seed(2)
trainer = ContrastiveTrainer()
tokens = torch.randint(0, 20, (80, 4))
images = torch.randn(20, 10)[tokens].mean(1)
for _ in range(2):
    trainer.run_epoch(images, tokens)
