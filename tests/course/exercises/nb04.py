"""Right answers to the exercises of notebook 04, written another way than the solutions."""

import torch


def by_trying(model, optimizer):
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.zero_grad()
    return {name for name, p in model.named_parameters() if p.grad is not None}


def frozen_meanwhile(generator, critic, opt_g, opt_c, says, batches):
    for real, noise in batches:
        opt_g.zero_grad()
        critic.requires_grad_(False)
        says(critic(generator(noise)), True).backward()
        critic.requires_grad_(True)
        opt_g.step()

        says(critic(real), True).backward()
        says(critic(generator(noise).detach()), False).backward()
        opt_c.step()
        opt_c.zero_grad()


def by_rings(order):
    at = order.index("backward")
    return order[at:] + order[:at] in (
        ["backward", "step", "zero", "forward"],
        ["backward", "step", "forward", "zero"],
    )


RIGHT = {"uncleared": [by_trying], "two_players": [frozen_meanwhile], "trains": [by_rings]}
