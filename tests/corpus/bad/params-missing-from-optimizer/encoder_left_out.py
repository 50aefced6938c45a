# A captioning model built from two modules, where the optimizer was given the decoder's parameters only.
# source: facebookresearch/mmf#104
# expect: params-missing-from-optimizer
# severity: hint (some leave a part as it is on purpose)
import torch
import torch.optim as optim
from torch import nn
from torch.nn.utils import clip_grad_norm_

torch.manual_seed(1)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, stride=2)
        self.embed = nn.Linear(8 * 9, 16)

    def forward(self, img):
        return self.embed(torch.relu(self.conv(img)).flatten(1))


class Decoder(nn.Module):
    def __init__(self, vocab=30):
        super().__init__()
        self.emb = nn.Embedding(vocab, 16)
        self.rnn = nn.GRU(16, 16, batch_first=True)
        self.out = nn.Linear(16, vocab)

    def forward(self, feature, caption):
        hidden, _ = self.rnn(self.emb(caption), feature.unsqueeze(0))
        return self.out(hidden)


encoder, decoder = Encoder(), Decoder()
optimizer = optim.Adam(decoder.parameters(), lr=2e-3)  # <- params-missing-from-optimizer, cause
images, captions = torch.rand(40, 3, 8, 8), torch.randint(0, 30, (40, 6))


def train_step(img, cap):
    encoder.zero_grad()
    decoder.zero_grad()
    logits = decoder(encoder(img), cap[:, :-1])
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), cap[:, 1:].flatten())
    loss.backward()
    clip_grad_norm_(decoder.parameters(), 5.0)
    optimizer.step()
    return loss.item()


for epoch in range(3):
    losses = [train_step(images[i : i + 8], captions[i : i + 8]) for i in range(0, 40, 8)]
    print(f"Epoch {epoch}: {sum(losses) / len(losses):.4f}")
