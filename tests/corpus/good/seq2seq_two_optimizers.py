# Encoder and decoder have an optimizer each, the loss is one sum over the steps of the output, with teacher forcing
# half of the time (without it, the decoder's own word is detached from history).
# source: pytorch/tutorials intermediate_source/seq2seq_translation_tutorial.py
import random

import torch
import torch.nn as nn
from torch.optim import SGD

SOS, HIDDEN, WORDS, LENGTH = 0, 24, 10, 4


class EncoderRNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, HIDDEN)
        self.gru = nn.GRU(HIDDEN, HIDDEN)

    def forward(self, word, hidden):
        return self.gru(self.embedding(word).view(1, 1, -1), hidden)


class DecoderRNN(EncoderRNN):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(HIDDEN, WORDS)

    def forward(self, word, hidden):
        output, hidden = super().forward(word, hidden)
        return torch.log_softmax(self.out(output[0]), dim=1), hidden


def train(source, target, encoder, decoder, encoder_optimizer, decoder_optimizer, criterion):
    hidden = torch.zeros(1, 1, HIDDEN)
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    loss = 0
    for ei in range(LENGTH):
        _, hidden = encoder(source[ei], hidden)
    word = torch.tensor([SOS])
    teacher_forcing = random.random() < 0.5
    for di in range(LENGTH):
        output, hidden = decoder(word, hidden)
        loss += criterion(output, target[di : di + 1])
        word = target[di] if teacher_forcing else output.topk(1)[1].squeeze().detach()
    loss.backward()
    encoder_optimizer.step()
    decoder_optimizer.step()
    return loss.item() / LENGTH


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(15)
    enc, dec = EncoderRNN(), DecoderRNN()
    opts = SGD(enc.parameters(), lr=0.05), SGD(dec.parameters(), lr=0.05)
    pairs = [(s, s.flip(0)) for s in torch.randint(1, WORDS, (4, LENGTH))]
    losses = [train(*random.choice(pairs), enc, dec, *opts, nn.NLLLoss()) for _ in range(120)]
    print(sum(losses[:20]) / 20, sum(losses[-20:]) / 20)
