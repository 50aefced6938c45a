# A parameter server adds workers' gradients into p.grad, which zero_grad() has set to None since PyTorch 2.0.
# source: pytorch/examples#1172
# expect: grad-none-after-zero-grad
# raises: TypeError
import torch
from torch import nn, optim


class BatchUpdateParameterServer:
    def __init__(self, batch_update_size=3):
        self.model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
        self.batch_update_size = batch_update_size
        self.curr_update_size = 0
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        for p in self.model.parameters():
            p.grad = torch.zeros_like(p)

    def update_and_fetch_model(self, grads):
        for p, g in zip(self.model.parameters(), grads, strict=True):
            p.grad += g  # <- grad-none-after-zero-grad, cause
        self.curr_update_size += 1
        if self.curr_update_size >= self.batch_update_size:
            for p in self.model.parameters():
                p.grad /= self.batch_update_size
            self.curr_update_size = 0
            self.optimizer.step()
            self.optimizer.zero_grad()  # <- cause
        return self.model


torch.manual_seed(0)
server = BatchUpdateParameterServer()
for step in range(30):
    x = torch.randn(8, 6)
    loss = nn.functional.cross_entropy(server.model(x), (x[:, 0] > 0).long())
    grads = torch.autograd.grad(loss, list(server.model.parameters()))
    server.update_and_fetch_model(grads)
    print(f"worker {step % 3} loss {loss.item():.4f}")
