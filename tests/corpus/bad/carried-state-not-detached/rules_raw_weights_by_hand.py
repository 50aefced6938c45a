# A recurrent cell of two plain tensors, updated by hand through .data and never cleared: the state of the last batch is
# carried on with its graph.
# source: https://discuss.pytorch.org/t/runtimeerror-trying-to-backward-through-the-graph-a-second-time/90223
# expect: carried-state-not-detached
# raises: RuntimeError
import torch

torch.manual_seed(0)
w, u = torch.randn(8, 8, requires_grad=True), torch.randn(1, 8, requires_grad=True)
state = torch.zeros(4, 8)
for _ in range(2):
    x = torch.randn(4, 1)
    state = torch.tanh(state @ w + x @ u)  # <- cause
    loss = (state.sum(1, keepdim=True) - x).pow(2).mean()
    loss.backward()  # <- carried-state-not-detached, cause
    w.data -= 0.01 * w.grad
    u.data -= 0.01 * u.grad
