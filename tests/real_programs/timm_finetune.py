# timm: a small ResNet (the last BatchNorm of a block starts at 0), its optimizer, scheduler, mixup and averages.
import hashlib

import timm
import torch
from timm.data import Mixup
from timm.loss import SoftTargetCrossEntropy
from timm.optim import create_optimizer_v2
from timm.scheduler import CosineLRScheduler
from timm.utils import ModelEmaV3


def main():
    torch.manual_seed(0)
    import numpy

    numpy.random.seed(0)
    model = timm.create_model("resnet10t", pretrained=False, num_classes=4)
    optimizer = create_optimizer_v2(model, opt="sgd", lr=0.05, momentum=0.9, weight_decay=1e-4)
    scheduler = CosineLRScheduler(optimizer, t_initial=3, warmup_t=1, warmup_lr_init=1e-3)
    averaged = ModelEmaV3(model, decay=0.9)
    mixup = Mixup(mixup_alpha=0.2, num_classes=4)
    criterion = SoftTargetCrossEntropy()
    images, labels = torch.randn(32, 3, 32, 32), torch.randint(0, 4, (32,))
    for epoch in range(3):
        model.train()
        optimizer.zero_grad()
        for index, rows in enumerate(torch.randperm(32).split(4)):
            mixed, targets = mixup(images[rows].clone(), labels[rows])
            loss = criterion(model(mixed), targets) / 2
            loss.backward()
            if index % 2 == 1:
                timm.utils.dispatch_clip_grad(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                averaged.update(model)
        scheduler.step(epoch + 1)
        model.eval()
        with torch.no_grad():
            right = (model(images).argmax(1) == labels).float().mean()
        print(f"epoch {epoch}: {right:.2f}")
    weights = b"".join(value.numpy().tobytes() for value in averaged.module.state_dict().values())
    print("digest:", hashlib.sha256(weights).hexdigest())


if __name__ == "__main__":
    main()
