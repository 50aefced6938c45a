# A compiled model and a compiled loss function (the eager backend, so that no compiler is needed); the optimizer was
# made from the model before it was compiled.
# source: pytorch/tutorials intermediate_source/torch_compile_tutorial.py
import torch

torch.manual_seed(96)
model = torch.nn.Sequential(torch.nn.Linear(10, 40), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(40, 2))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
compiled = torch.compile(model, backend="eager")


@torch.compile(backend="eager")
def focal_loss(logits, target, gamma=2.0):
    logp = torch.log_softmax(logits, dim=1).gather(1, target[:, None]).squeeze(1)
    return (-((1 - logp.exp()) ** gamma) * logp).mean()


def train(data):
    opt.zero_grad(True)
    pred = compiled(data[0])
    loss = focal_loss(pred, data[1])
    loss.backward()
    opt.step()
    return loss


for it in range(24):
    x = torch.randn(32, 10)
    value = train((x, (x[:, 0] * 2 + x[:, 1] > 0).long()))
    if it % 8 == 7:
        compiled.eval()
        with torch.no_grad():
            accuracy = (compiled(x).argmax(1) == (x[:, 0] * 2 + x[:, 1] > 0)).float().mean()
        compiled.train()
        print(it, value.item(), accuracy.item())
