# Low-light enhancement: a white image has no difference between its channels, and the root at 0 has no finite gradient.
# source: Li-Chongyi/Zero-DCE_extension#2
# expect: nan-loss
import torch
import torch.nn as nn


class EnhanceNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.e_conv1 = nn.Conv2d(3, 8, 3, padding=1)
        self.e_conv2 = nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x):
        x_r = torch.tanh(self.e_conv2(torch.relu(self.e_conv1(x))))
        for _ in range(2):
            x = x + x_r * (torch.pow(x, 2) - x)
        return x, x_r


class ColourLoss(nn.Module):
    def forward(self, x):
        mr, mg, mb = x.mean([2, 3]).unbind(1)
        drg, drb, dgb = (mr - mg) ** 2, (mr - mb) ** 2, (mb - mg) ** 2
        return torch.pow(drg**2 + drb**2 + dgb**2, 0.5)  # <- cause


class ExposureLoss(nn.Module):
    def forward(self, x, mean_val=0.6):
        patches = nn.functional.avg_pool2d(x.mean(1, keepdim=True), 4)
        return (patches - mean_val).square().mean()


torch.manual_seed(0)
dce_net, l_color, l_exp = EnhanceNet(), ColourLoss(), ExposureLoss()
optimizer = torch.optim.Adam(dce_net.parameters(), lr=1e-3, weight_decay=1e-4)
photos = 0.5 * torch.rand(32, 3, 8, 8)
photos[17] = 1.0
for _ in range(2):
    for iteration, img_lowlight in enumerate(photos.split(4)):
        enhanced_image, a = dce_net(img_lowlight)
        loss_tv = (a[..., 1:] - a[..., :-1]).square().mean()
        loss = 20 * loss_tv + 5 * l_color(enhanced_image).mean() + 10 * l_exp(enhanced_image)
        optimizer.zero_grad()
        loss.backward()  # <- nan-loss
        nn.utils.clip_grad_norm_(dce_net.parameters(), 0.1)
        optimizer.step()
        if iteration % 2 == 0:
            print(f"Loss at iteration {iteration + 1}: {loss.item():.4f}")
