# A text VAE whose generator loss also reaches the encoder; the encoder's step then applies both losses' gradients.
# source: wiseodd/controlled-text-generation#27
# expect: foreign-gradients-in-step
import torch
from torch import nn

torch.manual_seed(3)


class TextVAE(nn.Module):
    def __init__(self, vocab=25, z_dim=6):
        super().__init__()
        self.emb = nn.Embedding(vocab, 12)
        self.encoder = nn.GRU(12, 2 * z_dim, batch_first=True)
        self.decoder = nn.GRU(12 + z_dim, 16, batch_first=True)
        self.out = nn.Linear(16, vocab)

    def forward(self, ids):
        emb = self.emb(ids).detach()
        mu, logvar = self.encoder(emb)[1][0].chunk(2, dim=1)
        z = mu + (0.5 * logvar).exp() * torch.randn_like(mu)
        dec_in = torch.cat([emb[:, :-1], z.unsqueeze(1).expand(-1, ids.shape[1] - 1, -1)], 2)
        logits = self.out(self.decoder(dec_in)[0])
        recon = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        kl = 0.5 * (logvar.exp() + mu**2 - 1 - logvar).sum(1).mean()
        return recon, kl


model = TextVAE()
model.emb.requires_grad_(False)
generator_params = [*model.decoder.parameters(), *model.out.parameters()]
trainer_g = torch.optim.Adam(generator_params, lr=1e-3)
trainer_e = torch.optim.Adam(model.encoder.parameters(), lr=1e-3)
sentences = torch.randint(0, 25, (14, 8, 7))

for it, inputs in enumerate(sentences):
    loss_g, _ = model(inputs)
    loss_g.backward()  # <- cause
    trainer_g.step()
    trainer_g.zero_grad()  # <- cause

    recon_loss, kl_loss = model(inputs)  # <- cause
    loss_e = recon_loss + 0.1 * kl_loss
    loss_e.backward()  # <- cause
    trainer_e.step()  # <- foreign-gradients-in-step, cause
    trainer_e.zero_grad()  # <- cause
    trainer_g.zero_grad()
    if it % 4 == 0:
        print(f"Iter-{it}; loss_g: {loss_g.item():.4f}; loss_e: {loss_e.item():.4f}")
