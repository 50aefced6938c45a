# Contrastive sequence training: generate_adv() clears the model after its backward(), generate_cont_adv() does not.
# source: seanie12/CLAPS#5
# expect: attack-gradients-in-step
import torch
import torch.nn.functional as F
from torch import nn


class AdvContrastive(nn.Module):
    def __init__(self, vocab=20, size=16, tau=0.5, eps=1.0):
        super().__init__()
        self.embed, self.encoder = nn.Embedding(vocab, size), nn.GRU(size, size, batch_first=True)
        self.decoder, self.lm_head = nn.GRU(size, size, batch_first=True), nn.Linear(size, vocab)
        self.projection = nn.Sequential(nn.Linear(size, size), nn.ReLU())
        self.tau, self.eps = tau, eps

    def generate_adv(self, dec_hiddens, labels):
        hiddens = dec_hiddens.detach().requires_grad_(True)
        loss = F.cross_entropy(self.lm_head(hiddens).flatten(0, 1), labels.flatten())
        loss.backward()
        self.zero_grad()
        return (hiddens + self.eps * F.normalize(hiddens.grad, dim=-1)).detach()

    def generate_cont_adv(self, avg_enc, dec_hiddens):
        hiddens = dec_hiddens.detach().requires_grad_(True)
        proj = self.projection(hiddens.mean(1))
        similarity = F.cosine_similarity(self.projection(avg_enc.detach()).unsqueeze(1), proj, dim=-1) / self.tau
        loss = F.cross_entropy(similarity, torch.arange(len(proj)))
        loss.backward()  # <- cause
        return (hiddens + self.eps * F.normalize(hiddens.grad, dim=-1)).detach()  # <- cause

    def forward(self, src, tgt):
        enc, state = self.encoder(self.embed(src))
        dec, _ = self.decoder(self.embed(tgt[:, :-1]), state)
        nll = F.cross_entropy(self.lm_head(dec).flatten(0, 1), tgt[:, 1:].flatten())
        negative, positive = self.generate_adv(dec, tgt[:, 1:]), self.generate_cont_adv(enc.mean(1), dec)
        anchor = self.projection(enc.mean(1)).unsqueeze(1)
        candidates = torch.stack([self.projection(h.mean(1)) for h in (dec, positive, negative)], dim=1)
        sim = F.cosine_similarity(anchor, candidates, dim=-1) / self.tau
        return nll, -F.log_softmax(sim, dim=1)[:, :2].mean()


torch.manual_seed(3)
model = AdvContrastive()
optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2)
sentences = torch.randint(0, 20, (48, 7))
for epoch in range(2):
    for src in sentences.split(8):
        optimizer.zero_grad()  # <- cause
        nll, cont_loss = model(src, src.flip(1))
        loss = nll + cont_loss
        loss.backward()  # <- cause
        optimizer.step()  # <- attack-gradients-in-step
    print(f"epoch {epoch} nll {nll.item():.4f} cont {cont_loss.item():.4f}")
