# A sparse autoencoder with two mean losses accumulated over three batches; the division was removed by mistake.
# source: ApolloResearch/e2e_sae#70
# expect: loss-not-divided
# severity: hint (a sum over tasks looks the same, and a smaller lr makes up for it)
import torch
from torch import nn, optim
from torch.utils.data import DataLoader


class SAE(nn.Module):
    def __init__(self, d_in=12, d_dict=36):
        super().__init__()
        self.encoder = nn.Linear(d_in, d_dict)
        self.decoder = nn.Linear(d_dict, d_in, bias=True)

    def forward(self, x):
        c = torch.relu(self.encoder(x))
        return self.decoder(c), c


if __name__ == "__main__":
    torch.manual_seed(2)
    gradient_accumulation_steps = 3
    acts = torch.randn(144, 12)
    sae = SAE()
    optimizer = optim.SGD(sae.parameters(), lr=0.02)
    train_loader = DataLoader(acts, batch_size=8, shuffle=True, num_workers=1)
    for _ in range(2):
        for batch_idx, orig in enumerate(train_loader):
            recon, c = sae(orig)
            mse = (recon - orig).pow(2).mean()
            sparsity = c.abs().sum(-1).mean()
            loss = mse + 1e-3 * sparsity  # <- cause
            loss.backward()  # <- loss-not-divided, cause
            if (batch_idx + 1) % gradient_accumulation_steps == 0:
                optimizer.step()
                optimizer.zero_grad()
        print(f"loss {loss.item():.4f}")
