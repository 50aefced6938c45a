# A text-conditioned denoiser with accumulated float16 gradients, clipped at the window's end while still scaled.
# source: harubaru/waifu-diffusion#64
# expect: clip-before-unscale
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_


class StableDiffusionTrainer:
    def __init__(self, unet, text_encoder, max_grad_norm=1.0, accumulation=2):
        self.unet, self.text_encoder = unet, text_encoder
        self.params = [*unet.parameters(), *text_encoder.parameters()]
        self.optimizer = torch.optim.AdamW(self.params, lr=5e-4)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)
        self.max_grad_norm, self.accumulation = max_grad_norm, accumulation

    def sub_step(self, latents, tokens):
        noise = torch.randn_like(latents)
        with torch.autocast("cpu", dtype=torch.float16):
            context = self.text_encoder(tokens)
            noise_pred = self.unet(torch.cat([latents + noise, context.float()], dim=1))
        loss = nn.functional.mse_loss(noise_pred.float(), noise)
        self.scaler.scale(loss / self.accumulation).backward()
        return loss.item()

    def step(self, batch):
        losses = [self.sub_step(*micro) for micro in batch]  # <- cause
        clip_grad_norm_(self.params, self.max_grad_norm)  # <- clip-before-unscale, cause
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        return sum(losses) / len(losses)


torch.manual_seed(3)
trainer = StableDiffusionTrainer(
    nn.Sequential(nn.Linear(20, 48), nn.SiLU(), nn.Linear(48, 12)), nn.EmbeddingBag(30, 8, mode="mean")
)
for i in range(10):
    batch = [(torch.randn(8, 12), torch.randint(0, 30, (8, 5))) for _ in range(2)]
    loss = trainer.step(batch)
    if i % 3 == 0:
        print(i, round(loss, 4))
