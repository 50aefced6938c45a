# diffusers: the training loop of its tutorial: a small UNet, noise added by a scheduler, accelerate, an averaged model.
import hashlib
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from diffusers import DDPMScheduler, UNet2DModel
from diffusers.optimization import get_cosine_schedule_with_warmup
from diffusers.training_utils import EMAModel
from torch.nn import functional as F
from torch.utils.data import DataLoader


def main():
    set_seed(0)
    loader = DataLoader(torch.randn(48, 1, 8, 8), 8, shuffle=True)
    unet = UNet2DModel(
        sample_size=8,
        in_channels=1,
        out_channels=1,
        layers_per_block=1,
        block_out_channels=(16, 16),
        norm_num_groups=4,
        down_block_types=("DownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "UpBlock2D"),
    )
    noise_scheduler = DDPMScheduler(num_train_timesteps=50)
    optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-3)
    schedule = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=2, num_training_steps=18)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=1)
    unet, optimizer, loader, schedule = accelerator.prepare(unet, optimizer, loader, schedule)
    averaged = EMAModel(unet.parameters(), decay=0.9)
    for epoch in range(3):
        for clean in loader:
            noise = torch.randn(clean.shape)
            steps = torch.randint(0, 50, (len(clean),))
            noisy = noise_scheduler.add_noise(clean, noise, steps)
            with accelerator.accumulate(unet):
                loss = F.mse_loss(unet(noisy, steps, return_dict=False)[0], noise)
                accelerator.backward(loss)
                accelerator.clip_grad_norm_(unet.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            averaged.step(unet.parameters())
        print(f"epoch {epoch}: {loss.item():.3f}")
    averaged.copy_to(unet.parameters())
    weights = b"".join(value.detach().numpy().tobytes() for value in unet.parameters())
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
