# A semi-supervised step that clips by value before it unscales; the unscale_ below comes one line too late.
# source: TorchSSL/TorchSSL#59
# expect: clip-before-unscale
import torch
import torch.nn.functional as F
from torch.amp import GradScaler, autocast
from torch.nn.utils import clip_grad_value_

torch.manual_seed(2)
model = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
scaler = GradScaler("cpu", init_scale=256.0, growth_interval=1000)
x_lb = torch.randn(160, 12)
y_lb = x_lb[:, :4].argmax(1)
x_ulb = torch.randn(320, 12)

it = 0
while it < 12:
    lb, ulb = torch.randint(0, 160, (16,)), torch.randint(0, 320, (32,))
    weak = x_ulb[ulb] + 0.01 * torch.randn(32, 12)
    strong = x_ulb[ulb] + 0.2 * torch.randn(32, 12)
    with autocast("cpu", dtype=torch.float16):
        logits = model(torch.cat([x_lb[lb], weak, strong])).float()
        logits_lb, logits_w, logits_s = logits.split([16, 32, 32])
        sup_loss = F.cross_entropy(logits_lb, y_lb[lb])
        prob, pseudo = logits_w.detach().softmax(1).max(1)
        unsup_loss = (F.cross_entropy(logits_s, pseudo, reduction="none") * (prob > 0.3)).mean()
        total_loss = sup_loss + unsup_loss

    scaler.scale(total_loss).backward()
    clip_grad_value_(model.parameters(), 0.05)  # <- clip-before-unscale, cause
    scaler.unscale_(optimizer)  # <- cause
    scaler.step(optimizer)
    scaler.update()
    model.zero_grad()
    if it % 4 == 0:
        print(f"{it} iteration, sup {sup_loss.item():.4f} unsup {unsup_loss.item():.4f}")
    it += 1
