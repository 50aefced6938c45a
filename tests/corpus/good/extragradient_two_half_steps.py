# The extragradient method for a game: an extrapolation step with the gradients of now, new gradients at the point
# reached, and a second step with those from where the first one started.
# source: arxiv.org/abs/1802.10551 (A variational inequality perspective on GANs, ExtraSGD)
import torch


class ExtraSGD(torch.optim.SGD):
    def __init__(self, params, **kw):
        super().__init__(params, **kw)
        self.params_copy = []

    def extrapolation(self):
        for group in self.param_groups:
            self.params_copy += [p.detach().clone() for p in group["params"]]
        super().step()

    def step(self, closure=None):
        copies = iter(self.params_copy)
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.copy_(next(copies))
        super().step()
        self.params_copy = []


torch.manual_seed(112)
theta = torch.nn.Parameter(torch.randn(4))
phi = torch.nn.Parameter(torch.randn(4))
matrix = torch.eye(4) + 0.2 * torch.randn(4, 4)
players = [ExtraSGD([theta], lr=0.2), ExtraSGD([phi], lr=0.2)]
losses = [lambda: theta @ matrix @ phi, lambda: -(theta @ matrix @ phi)]
for n_iteration in range(80):
    extrapolate = n_iteration % 2 == 0
    for player, loss_fn in zip(players, losses, strict=True):
        for other in players:
            other.zero_grad()
        loss_fn().backward(inputs=player.param_groups[0]["params"])
        player.pending = [p.grad.clone() for p in player.param_groups[0]["params"]]
    for player in players:
        for p, g in zip(player.param_groups[0]["params"], player.pending, strict=True):
            p.grad = g
        if extrapolate:
            player.extrapolation()
        else:
            player.step()
    if n_iteration % 20 == 0:
        print(n_iteration, f"distance from the equilibrium {torch.cat([theta, phi]).norm().item():.4f}")
