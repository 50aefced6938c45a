# A tutorial prints a few entries of a layer's gradient after zero_grad() to show that they are zeros now.
# source: pytorch/tutorials#2219
# expect: grad-none-after-zero-grad
# raises: TypeError
import torch

torch.manual_seed(1)
BATCH_SIZE, DIM_IN, HIDDEN_SIZE, DIM_OUT = 16, 100, 50, 10


class TinyModel(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = torch.nn.Linear(DIM_IN, HIDDEN_SIZE)
        self.relu = torch.nn.ReLU()
        self.layer2 = torch.nn.Linear(HIDDEN_SIZE, DIM_OUT)

    def forward(self, x):
        return self.layer2(self.relu(self.layer1(x)))


some_input = torch.randn(BATCH_SIZE, DIM_IN, requires_grad=False)
ideal_output = torch.randn(BATCH_SIZE, DIM_OUT, requires_grad=False)
model = TinyModel()
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)

for _ in range(10):
    prediction = model(some_input)
    loss = (ideal_output - prediction).pow(2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss)

optimizer.zero_grad()  # <- cause
print(model.layer2.weight.grad[0][0:10])  # <- grad-none-after-zero-grad, cause
