# cross_entropy with probabilities as targets: the teacher's softmax, mixed with one-hot labels, goes in as the second
# argument; the student's logits go in raw.
# source: docs.pytorch.org/docs/stable/generated/torch.nn.CrossEntropyLoss.html (target containing class probabilities)
import torch
from torch import nn

torch.manual_seed(215)
x = torch.randn(256, 6)
y = (x @ torch.randn(6, 5)).argmax(1)


def network(width):
    return nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, 5))


def fit(net, teacher=None, epochs=6):
    mix = torch.distributions.Beta(0.4, 0.4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
    for epoch in range(epochs):
        for batch in torch.randperm(256).split(32):
            target = nn.functional.one_hot(y[batch], 5).float()
            inputs = x[batch]
            if teacher is not None:
                with torch.no_grad():
                    target = 0.5 * target + 0.5 * torch.softmax(teacher(inputs) / 2.0, dim=-1)
                lam, other = mix.sample(), torch.randperm(len(batch))
                inputs = lam * inputs + (1 - lam) * inputs[other]
                target = lam * target + (1 - lam) * target[other]
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(inputs), target)
            loss.backward()
            optimizer.step()
        print("student" if teacher else "teacher", epoch, loss.item())
    return net


fit(network(10), teacher=fit(network(64)).eval())
