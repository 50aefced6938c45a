# A GRU for keyword spotting trained by an Executor class whose train method steps but never clears.
# source: wenet-e2e/wekws#72
# expect: missing-zero-grad
import torch
import torch.nn.functional as F
from torch.nn.utils import clip_grad_norm_


class KWSModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.GRU(6, 16, batch_first=True)
        self.classifier = torch.nn.Linear(16, 3)

    def forward(self, feats):
        out, _ = self.rnn(feats)
        return self.classifier(out[:, -1])


class Executor:
    def __init__(self):
        self.step = 0

    def train(self, model, optimizer, data_loader, args):
        model.train()
        clip = args.get("grad_clip", 50.0)
        for batch_idx, (feats, target) in enumerate(data_loader):
            logits = model(feats)  # <- cause
            loss = F.cross_entropy(logits, target)
            loss.backward()  # <- cause
            grad_norm = clip_grad_norm_(model.parameters(), clip)
            if torch.isfinite(grad_norm):
                optimizer.step()  # <- missing-zero-grad, cause
            if batch_idx % args.get("log_interval", 10) == 0:
                print(f"TRAIN Batch {batch_idx} loss {loss.item():.6f}")
            self.step += 1


torch.manual_seed(3)
feats = torch.randn(60, 7, 6)
target = feats[:, :, :3].sum(1).argmax(1)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(feats, target), batch_size=10)
model = KWSModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
executor = Executor()
for _epoch in range(3):
    executor.train(model, optimizer, loader, {"grad_clip": 50.0})
