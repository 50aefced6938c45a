# Free adversarial training: every batch is replayed m times, and each single backward serves both the weights and
# the noise on the input, which lives on from batch to batch.
# source: mahyarnajibi/FreeAdversarialTraining main_free.py
import torch
from torch import nn
from torch.autograd import Variable

torch.manual_seed(19)
FGSM_STEP, CLIP_EPS, N_REPEATS, BATCH = 0.01, 0.02, 4, 25
global_noise_data = torch.zeros([BATCH, 12])
model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
samples = torch.rand(100, 12)
targets = (samples[:, :6].mean(1) > samples[:, 6:].mean(1)).long()


def fgsm(gradz, step_size):
    return step_size * torch.sign(gradz)


def train(epoch):
    model.train()
    for i in range(0, 100, BATCH):
        inp, target = samples[i : i + BATCH], targets[i : i + BATCH]
        for _ in range(N_REPEATS):
            noise_batch = Variable(global_noise_data[0 : inp.size(0)], requires_grad=True)
            in1 = inp + noise_batch
            in1.clamp_(0, 1.0)
            output = model(in1)
            loss = criterion(output, target)
            optimizer.zero_grad()
            loss.backward()
            pert = fgsm(noise_batch.grad, FGSM_STEP)
            global_noise_data[0 : inp.size(0)] += pert.data
            global_noise_data.clamp_(-CLIP_EPS, CLIP_EPS)
            optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")


for epoch in range(4):
    train(epoch)
