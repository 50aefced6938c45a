# The same feature extractor serves two data sets in turn; three backwards add up in it before one step of several
# optimizers, and the penalty on the weights has a backward of its own.
# source: discuss.pytorch.org/t/why-do-we-need-to-set-the-gradients-manually-to-zero-in-pytorch/4903/9
import torch
import torch.nn as nn

torch.manual_seed(13)


def main():
    feature_extractor = nn.GRU(3, 12, batch_first=True)
    task1, task2 = nn.Linear(12, 1), nn.Linear(12, 2)
    optims = [torch.optim.Adam(m.parameters(), lr=1e-2) for m in (feature_extractor, task1, task2)]
    for step in range(30):
        for o in optims:
            o.zero_grad()
        a = torch.randn(16, 5, 3)
        loss1 = (task1(feature_extractor(a)[0][:, -1]) - a.mean((1, 2)).unsqueeze(1)).pow(2).mean()
        loss1.backward()
        b = torch.rand(16, 5, 3)
        loss2 = nn.CrossEntropyLoss()(task2(feature_extractor(b)[0][:, -1]), (b[:, -1, 0] > 0.5).long())
        loss2.backward()
        decay = 1e-4 * sum(p.pow(2).sum() for p in feature_extractor.parameters())
        decay.backward()
        for o in optims:
            o.step()
        if step in (0, 29):
            print(f"{step}: {loss1.item():.4f} {loss2.item():.4f} {decay.item():.4f}")


main()
