# A tokenizer with a perceptual loss: the hook that records the features detaches them, for the reconstruction as well.
# source: myscience/open-genie#6
# expect: loss-term-detached
# missed: a hook fills the dictionary that the term comes from
import torch
import torch.nn.functional as F
from torch import nn


class RecordingProbe:
    def __init__(self):
        self.features = {}

    def __call__(self, name):
        def hook(module, inputs, output):
            self.features[name] = output.detach()  # <- cause

        return hook


class PerceptualLoss(nn.Module):
    def __init__(self, layers=("1", "3")):
        super().__init__()
        conv1, conv2 = nn.Conv2d(1, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
        self.net = nn.Sequential(conv1, nn.ReLU(), conv2, nn.ReLU()).requires_grad_(False).eval()
        self.probe, self.layers = RecordingProbe(), layers
        for name in layers:
            self.net.get_submodule(name).register_forward_hook(self.probe(name))

    def record(self, video):
        self.net(video)
        return dict(self.probe.features)

    def forward(self, rec_video, inp_video):
        fake_feat, real_feat = self.record(rec_video), self.record(inp_video)
        return sum(F.mse_loss(fake_feat[name], real_feat[name]) for name in self.layers)


class VideoTokenizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.GELU(), nn.Conv2d(8, 4, 1))
        self.dec = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(4, 1, 3, padding=1))
        self.perc_crit, self.perc_weight = PerceptualLoss(), 1.0

    def compute_loss(self, video):
        rec_video = self.dec(self.enc(video))
        perc_loss = self.perc_crit(rec_video, video)
        return F.mse_loss(rec_video, video) + self.perc_weight * perc_loss


torch.manual_seed(2)
tokenizer = VideoTokenizer()
optimizer = torch.optim.AdamW([p for p in tokenizer.parameters() if p.requires_grad], lr=3e-3)
for _ in range(15):
    loss = tokenizer.compute_loss(torch.rand(6, 1, 4, 4).repeat_interleave(2, 2).repeat_interleave(2, 3))
    optimizer.zero_grad()
    loss.backward()  # <- loss-term-detached
    optimizer.step()
print("loss", loss.item())
