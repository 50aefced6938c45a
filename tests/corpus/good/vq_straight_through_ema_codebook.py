# Vector quantisation: the gradient passes straight through x + (q - x).detach(); the codebook is a buffer that moves by
# an exponential average inside forward, and no optimizer knows it.
# source: lucidrains/vector-quantize-pytorch vector_quantize_pytorch/vector_quantize_pytorch.py
import torch
from torch import einsum, nn

torch.manual_seed(58)


class VectorQuantize(nn.Module):
    def __init__(self, dim, codebook_size, decay=0.8, commitment_weight=0.25):
        super().__init__()
        self.decay, self.commitment_weight = decay, commitment_weight
        embed = torch.randn(codebook_size, dim)
        self.register_buffer("embed", embed)
        self.register_buffer("cluster_size", torch.ones(codebook_size))
        self.register_buffer("embed_avg", embed.clone())

    def forward(self, x):
        ind = torch.cdist(x, self.embed).argmin(-1)
        quantize = self.embed[ind]
        if self.training:
            with torch.no_grad():
                onehot = nn.functional.one_hot(ind, len(self.embed)).type(x.dtype)
                self.cluster_size.lerp_(onehot.sum(0), 1 - self.decay)
                self.embed_avg.lerp_(einsum("nd,nc->cd", x, onehot), 1 - self.decay)
                self.embed.copy_(self.embed_avg / (self.cluster_size + 1e-5).unsqueeze(-1))
            commit = nn.functional.mse_loss(quantize.detach(), x) * self.commitment_weight
            quantize = x + (quantize - x).detach()
            return quantize, ind, commit
        return quantize, ind, torch.zeros(())


encoder, vq, decoder = nn.Linear(8, 3), VectorQuantize(3, 16), nn.Linear(3, 8)
opt = torch.optim.AdamW([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
centres = torch.randn(6, 8)
for i in range(80):
    x = centres[torch.randint(0, 6, (32,))] + 0.05 * torch.randn(32, 8)
    opt.zero_grad()
    out, indices, commit_loss = vq(encoder(x))
    rec_loss = (decoder(out) - x).abs().mean()
    (rec_loss + commit_loss).backward()
    opt.step()
    if i % 20 == 0:
        print(i, f"rec {rec_loss.item():.3f} commit {commit_loss.item():.3f} active {indices.unique().numel()}")
