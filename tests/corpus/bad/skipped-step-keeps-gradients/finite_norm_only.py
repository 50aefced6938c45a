# Speech recognition with accumulation: a window whose gradient norm is not finite is skipped, but never cleared.
# source: espnet/espnet#3283
# expect: skipped-step-keeps-gradients
import logging

import torch
import torch.nn as nn


class EncoderClassifier(nn.Module):
    def __init__(self, n_mels=8, size=16, vocab=5):
        super().__init__()
        self.frontend, self.out = nn.Linear(n_mels, size), nn.Linear(size, vocab)

    def forward(self, speech, text):
        feats = torch.relu(self.frontend(speech)).mean(1)
        return nn.functional.cross_entropy(self.out(feats).float(), text)


def train_one_epoch(model, optimizer, scheduler, iterator, scaler, accum_grad=2, grad_clip=5.0):
    model.train()
    for iiter, (speech, text) in enumerate(iterator, 1):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = model(speech, text) / accum_grad
        scaler.scale(loss).backward()
        if iiter % accum_grad == 0:
            scaler.unscale_(optimizer)
            grad_norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=grad_clip)
            finite = bool(torch.isfinite(grad_norm))
            scaler.step(optimizer)  # <- skipped-step-keeps-gradients, cause
            scaler.update()
            if not finite:  # <- cause
                logging.info("The grad norm is %s. Skipping updating the model.", grad_norm)
            else:
                scheduler.step()
                optimizer.zero_grad()  # <- cause
    print(f"loss {loss.item() * accum_grad:.4f} scale {scaler.get_scale():.3g}")


torch.manual_seed(0)
model = EncoderClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
speech, text = torch.randn(48, 20, 8), torch.randint(0, 5, (48,))
for _ in range(2):
    train_one_epoch(model, optimizer, scheduler, list(zip(speech.split(6), text.split(6), strict=True)), scaler)
