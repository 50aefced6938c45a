"""Right answers to the exercises, written another way than the solutions: by PyTorch, by measuring or by hand."""
# ruff: noqa: N803 - a matrix is W

import math
from collections import Counter
from functools import cache, partial
from itertools import pairwise

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DistributedSampler

from gradlab.course import OperationLog


def train_by_hand(model, loss_fn, batches, lr, window=1, max_norm=math.inf):
    """One epoch of plain SGD, each update on the mean loss of its window, clipped as clip_grad_norm_ documents."""
    parameters = list(model.parameters())
    for start in range(0, len(batches), window):
        losses = [loss_fn(model(x), y) for x, y in batches[start : start + window]]
        gradients = torch.autograd.grad(torch.stack(losses).mean(), parameters)
        norm = math.sqrt(sum(float((part**2).sum()) for part in gradients))
        with torch.no_grad():
            for parameter, part in zip(parameters, gradients, strict=True):
                parameter -= lr * min(1.0, max_norm / (norm + 1e-6)) * part


def by_torch(updates, accumulate, zero_grad):
    w = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    for _ in range(updates):
        if zero_grad:
            optimizer.zero_grad()
        for _ in range(accumulate):
            w.sum().backward()  # adds exactly 1
        optimizer.step()
    return w.grad


def times_by_counting(batch, updates, accumulate, zero_grad):
    held, times = [], 0
    for update in range(updates):
        held = ([] if zero_grad else held) + [update * accumulate + each for each in range(1, accumulate + 1)]
        times += batch in held
    return times


def by_cases(tensor):
    if not tensor.requires_grad:
        return False
    if tensor.grad_fn is None:
        return True
    return tensor.retains_grad


def level_by_level(node):
    arrived, here = 0, Counter([node])
    while here:
        after = Counter()
        for one, ways in here.items():
            if one.name().endswith("AccumulateGrad"):
                arrived += ways
            for target, _ in one.next_functions:
                if target is not None:
                    after[target] += ways
        here = after
    return arrived


def by_autograd(W, x, v):
    return torch.autograd.grad(torch.tanh(W.requires_grad_() @ x.requires_grad_()), (W, x), v)


def sums_first(w, losses):
    sums = [torch.zeros_like(w)]
    for loss in losses:
        loss.backward()
        sums.append(w.grad.clone())
    return [after - before for before, after in pairwise(sums)]


def by_autograd_memory_gradient(w, xs, goal):
    weight, h = torch.tensor(w, dtype=torch.float64, requires_grad=True), 0.0
    for x in xs:
        h = weight * h + x
    return torch.autograd.grad((h - goal) ** 2, weight)[0]


def step_by_step(w, xs, ys, size):
    h, loss = torch.zeros(()), 0.0
    for t in range(len(xs)):
        if t and t % size == 0:
            loss.backward()
            h, loss = h.detach(), 0.0
        h = torch.tanh(w * h + xs[t])
        loss = loss + (h - ys[t]) ** 2
    loss.backward()
    return w.grad.clone()


def by_the_half_angle(lr, loss_period):
    return 4 * math.sin(math.pi / loss_period / 2) ** 2 / lr


def mean_gap(losses):
    found = [t for t in range(1, len(losses) - 1) if losses[t] > losses[t - 1] and losses[t] >= losses[t + 1]]
    gaps = [later - earlier for earlier, later in pairwise(found)]
    return sum(gaps) / len(gaps)


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


def weights_after(order, rounds):
    """Train in this order; a forward comes before it where backward would find no loss."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = iter(torch.linspace(-1, 1, 8 * 5 * 3).view(8, 5, 3))
    before = () if order.index("forward") < order.index("backward") else ("forward",)
    for line in before + order * rounds:
        if line == "zero":
            optimizer.zero_grad()
        elif line == "forward":
            loss = model(next(batches)).square().mean()
        elif line == "backward":
            loss.backward()
        else:
            optimizer.step()
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


@cache
def ends_as_standard(order):
    standard = ("zero", "forward", "backward", "step")
    try:
        return any(torch.allclose(weights_after(order, 4), weights_after(standard, rounds)) for rounds in (3, 4))
    except RuntimeError:  # backward finds weights that step has changed
        return False


def by_training(order):
    return ends_as_standard(tuple(order))


def by_torch_gradient_norm(model):
    return torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1e9)


@cache
def measured(parameters, element_size, window, set_to_none):
    """What clearing and the backward passes move, less what computing the gradients alone moves."""
    dtype = {2: torch.bfloat16, 4: torch.float32, 8: torch.float64}[element_size]
    width = math.isqrt(parameters) - 1
    layer, x = torch.nn.Linear(width, width + 1, dtype=dtype), torch.randn(4, width, dtype=dtype)
    losses = [layer(x).square().mean() for _ in range(2 * window + 1)]
    losses.pop().backward()  # there is something to clear
    with OperationLog() as whole:
        layer.zero_grad(set_to_none=set_to_none)
        for loss in losses[:window]:
            loss.backward()
    with OperationLog() as computing:
        for loss in losses[window:]:
            torch.autograd.grad(loss, list(layer.parameters()))
    return whole.moved - computing.moved


def largest_level(activations, gradients):
    count = len(activations)
    levels = [sum(activations[:cut]) + sum(gradients[cut:]) for cut in range(count, -1, -1)]
    return sum(activations) + sum(gradients) - max(levels)


def by_layer(model, weight_decay):
    matrices = {layer.weight for layer in model.modules() if isinstance(layer, nn.Linear)}
    others = set(model.parameters()) - matrices
    return ({"params": matrices, "weight_decay": weight_decay}, {"params": (p for p in others), "weight_decay": 0.0})


def as_tensor(w, grads, lrs, beta):
    v = torch.zeros(0)
    for i, g in enumerate(grads):
        v = torch.cat([v, torch.tensor([beta * (v[i - 1] if i else 0) + g])])
    return w - torch.cumsum(torch.tensor(lrs) * v, dim=0)


def sgd_of_torch(w, grads, lrs, beta):
    weight, path = torch.tensor(w, dtype=torch.float64), []
    optimizer = torch.optim.SGD([weight], lr=0.1, momentum=beta)
    for g, lr in zip(grads, lrs, strict=True):
        weight.grad, optimizer.param_groups[0]["lr"] = torch.tensor(g, dtype=torch.float64), lr
        optimizer.step()
        path.append(weight.item())
    return path


def adamw_of_torch(w, grads, lr, weight_decay, beta1=0.9, beta2=0.999, eps=1e-8):
    weight, path = torch.tensor(w), []
    optimizer = torch.optim.AdamW([weight], lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay)
    for g in grads:
        weight.grad = None if g is None else torch.tensor(g)
        optimizer.step()
        path.append(weight.clone())
    return torch.stack(path)


def losses(model, window, reduction):
    for x, y in window:
        yield cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100, reduction=reduction)


def weighted(model, window):
    counts = [(y != -100).sum() for _, y in window]
    for loss, count in zip(losses(model, window, "mean"), counts, strict=True):
        (loss * count / sum(counts)).backward()


def as_a_tensor(model, loss_fn, window, optimizer, max_norm):
    model.zero_grad()
    mean = torch.stack([loss_fn(model(x), y) for x, y in window]).mean()
    mean.backward()
    clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return mean.detach()


ZERO, BACKWARD, UNSCALE = "optimizer.zero_grad()", "scaler.scale(loss).backward()", "scaler.unscale_(optimizer)"
CLIP, STEP, UPDATE = "clip_grad_norm_(model.parameters(), 0.1)", "scaler.step(optimizer)", "scaler.update()"


def by_the_limit(gradients):
    smallest = gradients[gradients != 0].abs().min().item()
    return 2 ** max(0, math.floor(math.log2(2**-25 / smallest)) + 1)  # above half of 2**-24, which rounds to 0


def by_torch_scales_after(overflowed, scale, growth_interval):
    weight = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)
    scaler, scales = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=growth_interval), []
    scaler.scale(torch.zeros(()))
    for bad in overflowed:
        weight.grad = torch.full((1,), math.inf if bad else 1.0)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales


def measured_bytes_after_step(parameters, optimizer):
    make = {"sgd": torch.optim.SGD, "momentum": partial(torch.optim.SGD, momentum=0.9), "adamw": torch.optim.AdamW}
    weight = torch.nn.Parameter(torch.zeros(parameters))
    weight.grad = torch.ones_like(weight)
    made = make[optimizer]([weight], lr=0.01)
    made.step()
    state = [part for part in made.state[weight].values() if isinstance(part, torch.Tensor)]
    return sum(part.nbytes for part in (weight, weight.grad, *state))


@torch.inference_mode()
def inference(model, batches):
    model.eval()
    return sum(cross_entropy(model(x), y).item() for x, y in batches) / len(batches)


def three_points(peak_of, budget):
    low, high = peak_of(100), peak_of(300)
    rows = 300 + (budget - high) * 200 // (high - low)
    return rows if peak_of(rows) <= budget else rows - 1


def as_they_come(history):
    held, used, number, found = 0, 0, 0, []  # gradients in .grad, and how many of them a step has used
    for call in history:
        if call == "zero":
            held = used = 0
        elif call == "backward":
            held += 1
        else:
            number += 1
            if used:
                found.append(number)
            used = held
    return found


def most_common(alive):
    return Counter(later - before for before, later in pairwise(alive)).most_common(1)[0][0]


def by_torch_rank_samples(samples, size, rank):
    return list(DistributedSampler(range(samples), size, rank, shuffle=False))


def by_windows(batches, accumulate, buckets, no_sync):
    if not no_sync:
        return buckets * batches
    return buckets * len(range(0, batches, accumulate))


def after(model, samples, all_reduce):
    for p in model.parameters():
        p.grad *= samples
        all_reduce(p.grad)
    total = torch.tensor([samples])
    all_reduce(total)
    for p in model.parameters():
        p.grad /= total


def with_a_set(facts):
    seen = set(facts.values()) - {None}
    if seen == {True, False}:
        return "depends"
    return {True: "holds", False: "does not hold"}[seen.pop()] if seen else "not judged"


def measured_flips_at(xs, divide):
    """Let the loop run with many values of lr at once, and look where it turns, closer and closer."""
    low, high, count = 1e-3, 100.0, 32
    for _ in range(3):
        lrs = torch.logspace(math.log10(low), math.log10(high), count, dtype=torch.float64)
        w = torch.ones_like(lrs)
        for _ in range(5):
            w.requires_grad_()
            loss = torch.stack([(w * x).square().sum() for x in xs]).sum() / (len(xs) if divide else 1)
            w = w.detach() - lrs * torch.autograd.grad(loss, w)[0]
        settled = int((w.abs() < 1).sum())
        low, high = lrs[max(settled - 1, 0)].item(), lrs[min(settled, count - 1)].item()
    return math.sqrt(low * high)


def side_by_side(build, make, batches):
    models = build(), build()
    for model, set_to_none in zip(models, (True, False), strict=True):
        optimizer = make(model.parameters())
        for batch in batches:
            optimizer.zero_grad(set_to_none=set_to_none)
            model.loss(batch).backward()
            optimizer.step()
    return all(torch.allclose(*pair) for pair in zip(*(model.parameters() for model in models), strict=True))


RIGHT = {
    "batches_in_grad": [by_torch],
    "windows_of_four": [partial(train_by_hand, window=4)],
    "times_applied": [times_by_counting],
    "keeps_grad": [by_cases],
    "pull_back": [by_autograd],
    "count_paths": [level_by_level],
    "gradient_of_each": [sums_first],
    "memory_gradient": [by_autograd_memory_gradient],
    "truncated": [step_by_step],
    "mended": [train_by_hand],
    "curvature_from": [by_the_half_angle],
    "period_of": [mean_gap],
    "uncleared": [by_trying],
    "two_players": [frozen_meanwhile],
    "trains": [by_training],
    "gradient_norm": [by_torch_gradient_norm],
    "bytes_moved": [lambda *arguments: measured(*arguments)],
    "saved": [largest_level],
    "decay_groups": [by_layer],
    "momentum_path": [as_tensor, sgd_of_torch],
    "adamw_path": [adamw_of_torch],
    "by_tokens": [weighted],
    "accumulated": [train_by_hand],
    "one_update": [as_a_tensor],
    "amp_order": [[BACKWARD, UNSCALE, CLIP, STEP, UPDATE, ZERO]],
    "smallest_scale": [by_the_limit],
    "scales_after": [by_torch_scales_after],
    "bytes_after_step": [measured_bytes_after_step],
    "evaluate": [inference],
    "largest_batch": [three_points],
    "reusing_steps": [as_they_come],
    "leak": [most_common],
    "rank_samples": [by_torch_rank_samples],
    "all_reduces": [by_windows],
    "fair_average": [after],
    "verdict_of": [with_a_set],
    "flips_at": [measured_flips_at],
    "same_effect": [side_by_side],
    "calls_in_order": [
        ["forward", "zero_grad", "backward", "unscale_", "clip", "scaler.step", "scheduler.step", "scaler.update"]
    ],
    "whole_loop": [train_by_hand],
}
