# CURL: the contrastive module holds the critic's encoder, so two optimizers step the encoder with the same gradients.
# source: MishaLaskin/curl#20
# expect: params-in-two-optimizers
# severity: hint (sharing a part between optimizers can be meant)
import copy

import torch
import torch.nn.functional as F
from torch import nn


class CURL(nn.Module):
    def __init__(self, z_dim, encoder, target_encoder):
        super().__init__()
        self.encoder = encoder
        self.encoder_target = target_encoder.requires_grad_(False)
        self.W = nn.Parameter(torch.rand(z_dim, z_dim))

    def compute_logits(self, z_a, z_pos):
        logits = z_a @ (self.W @ z_pos.T)
        return logits - logits.max(1, keepdim=True)[0].detach()


class CurlSacAgent:
    def __init__(self, obs_channels=3, z_dim=8, encoder_lr=1e-3):
        self.encoder = nn.Sequential(
            nn.Conv2d(obs_channels, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(72, z_dim), nn.LayerNorm(z_dim)
        )
        self.curl = CURL(z_dim, self.encoder, copy.deepcopy(self.encoder))
        self.encoder_optimizer = torch.optim.Adam(self.encoder.parameters(), lr=encoder_lr)
        cpc_params = [*self.encoder.parameters(), self.curl.W]  # <- cause
        self.cpc_optimizer = torch.optim.Adam(cpc_params, lr=encoder_lr)  # <- params-in-two-optimizers, cause

    def update_cpc(self, obs_anchor, obs_pos):
        z_a = self.curl.encoder(obs_anchor)
        with torch.no_grad():
            z_pos = self.curl.encoder_target(obs_pos)
        logits = self.curl.compute_logits(z_a, z_pos)
        loss = F.cross_entropy(logits, torch.arange(len(logits)))
        self.encoder_optimizer.zero_grad()
        self.cpc_optimizer.zero_grad()
        loss.backward()
        self.encoder_optimizer.step()
        self.cpc_optimizer.step()
        with torch.no_grad():
            for key, query in zip(self.curl.encoder_target.parameters(), self.encoder.parameters(), strict=True):
                key.lerp_(query, 0.05)
        return loss.item()


torch.manual_seed(23)
agent = CurlSacAgent()
frames = torch.rand(40, 3, 9, 9)
for step in range(15):
    obs = frames[torch.randint(40, (16,))]
    loss = agent.update_cpc(obs[:, :, :8, :8], obs[:, :, 1:, 1:])
    if step % 5 == 0:
        print(f"step {step} curl loss {loss:.4f}")
