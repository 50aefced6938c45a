# Neural style: LBFGS moves the input image, not the weights; the closure calls two backward-ready losses kept inside
# modules and runs many times a step.
# source: pytorch/tutorials advanced_source/neural_style_tutorial.py
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(21)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, x):
        self.loss = F.mse_loss(x, self.target)
        return x


def gram_matrix(x):
    f = x.flatten(2).squeeze(0)
    return f @ f.t() / f.numel()


class StyleLoss(ContentLoss):
    def forward(self, x):
        self.loss = F.mse_loss(gram_matrix(x), gram_matrix(self.target))
        return x


cnn = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.Tanh(), nn.Conv2d(6, 8, 3, padding=1)).eval()
content, style = torch.rand(1, 3, 12, 12), torch.rand(1, 3, 12, 12) * torch.linspace(0, 1, 12)
content_loss, style_loss = ContentLoss(cnn(content)), StyleLoss(cnn(style))
model = nn.Sequential(cnn, content_loss, style_loss)
input_img = torch.rand(1, 3, 12, 12)
input_img.requires_grad_(True)
model.eval()
model.requires_grad_(False)
optimizer = optim.LBFGS([input_img])

run = [0]
while run[0] <= 100:

    def closure():
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        model(input_img)
        loss = 1e6 * style_loss.loss + 1e2 * content_loss.loss
        loss.backward()
        run[0] += 1
        if run[0] % 50 == 1:
            print(f"run {run[0]}: style {style_loss.loss.item():.2e} content {content_loss.loss.item():.2e}")
        return loss

    optimizer.step(closure)
with torch.no_grad():
    input_img.clamp_(0, 1)
