"""Right answers to the exercises, written another way than the solutions: by PyTorch, by measuring or by hand."""

import math
from functools import cache, partial
from itertools import islice, pairwise

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_


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


def train_from_a_loader(model, loss_fn, loader, lr, window, max_norm):
    train_by_hand(model, loss_fn, list(loader), lr, window, max_norm)


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
    gradients, times = [], 0
    for update in range(updates):
        gradients = ([] if zero_grad else gradients) + [update * accumulate + each for each in range(1, accumulate + 1)]
        times += batch in gradients
    return times


def by_cases(tensor):
    if not tensor.requires_grad:
        return False
    if tensor.grad_fn is None:
        return True
    return tensor.retains_grad


def by_torch_tensors(data):
    return torch.tensor(data, dtype=torch.float64, requires_grad=True)


class InOrder:
    """Each value passes on, once, the sum of all that arrives, the newest one first."""

    def __init__(self, data, ways=(), age=0):
        self.data, self.ways, self.age, self.grad = data, ways, age, 0.0

    def __add__(self, other):
        return InOrder(self.data + other.data, [(self, 1), (other, 1)], 1 + max(self.age, other.age))

    def __mul__(self, other):
        ways = [(self, other.data), (other, self.data)]
        return InOrder(self.data * other.data, ways, 1 + max(self.age, other.age))

    def backward(self):
        self.grad, waiting = 1.0, {self}
        while waiting:
            node = max(waiting, key=lambda each: each.age)
            waiting.remove(node)
            for value, slope in node.ways:
                value.grad += node.grad * slope
                waiting.add(value)


def two_weights_by_torch(x, w1, w2, goal):
    w1, w2 = by_torch_tensors(w1), by_torch_tensors(w2)
    return torch.autograd.grad((w2 * w1 * x - goal) ** 2, (w1, w2))


def sums_first(w, losses):
    sums = [torch.zeros_like(w)]
    for loss in losses:
        loss.backward()
        sums.append(w.grad.clone())
    return [after - before for before, after in pairwise(sums)]


def third_times_zero(w, batches):
    for number, (x, y) in enumerate(batches, start=1):
        loss = (w @ x - y) ** 2
        loss = loss * (number != 3)
        loss.backward()


def third_with_a_copy(w, batches):
    for number, (x, y) in enumerate(batches, start=1):
        loss = (w @ x - y) ** 2
        w = w.detach().clone().requires_grad_() if number == 3 else w
        loss = (w @ x - y) ** 2
        loss.backward()


def third_taken_out_again(w, batches):
    for number, (x, y) in enumerate(batches, start=1):
        loss = (w @ x - y) ** 2
        before = None if w.grad is None else w.grad.clone()
        loss.backward()
        w.grad = before if number == 3 else w.grad


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


def emptied(w, optimizer, updates):
    for _ in range(updates):
        (w**2 / 2).backward()
        optimizer.step()
        w.grad = None


def with_friction(w, optimizer, updates):
    for _ in range(updates):
        (w**2 / 2).backward()
        optimizer.step()
        w.grad *= 0.9


def momentum_of_torch(model, loss_fn, batches, lr, beta):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=beta)
    for x, y in batches:
        optimizer.zero_grad()
        loss_fn(model(x), y).backward()
        optimizer.step()


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
    """Train in this order."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = iter(torch.linspace(-1, 1, 8 * 5 * 3).view(8, 5, 3))
    for line in order * rounds:
        if line == "zero_grad":
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
    standard = ("zero_grad", "forward", "backward", "step")
    try:
        return any(torch.allclose(weights_after(order, 4), weights_after(standard, rounds)) for rounds in (3, 4))
    except (NameError, RuntimeError):  # no loss yet, or weights that step has changed
        return False


def by_training(order):
    return ends_as_standard(tuple(order))


def by_torch_gradient_norm(model):
    return torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1e9)


def cleared_at_the_end(model, optimizer, x, y):
    cross_entropy(model(x), y).backward()
    optimizer.step()
    for parameter in model.parameters():
        parameter.grad = None


def largest_level(activations, gradients):
    count = len(activations)
    levels = [sum(activations[:cut]) + sum(gradients[cut:]) for cut in range(count, -1, -1)]
    return sum(activations) + sum(gradients) - max(levels)


def by_layer(model, weight_decay):
    matrices = {layer.weight for layer in model.modules() if isinstance(layer, nn.Linear)}
    others = set(model.parameters()) - matrices
    return ({"params": matrices, "weight_decay": weight_decay}, {"params": (p for p in others), "weight_decay": 0.0})


def in_one_line(w, v, g, lr, beta):
    return w - lr * (g + beta * v), g + beta * v


def sgd_of_torch(w, v, g, lr, beta):
    weight = torch.as_tensor(w, dtype=torch.float64).clone()
    weight.grad = torch.as_tensor(g, dtype=torch.float64)
    optimizer = torch.optim.SGD([weight], lr=lr, momentum=beta)
    optimizer.state[weight]["momentum_buffer"] = torch.zeros_like(weight) + v
    optimizer.step()
    return weight, optimizer.state[weight]["momentum_buffer"]


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


def two_moments(weights, activations, inputs, backward, step):
    moments = [3 * weights + activations + backward, 4 * weights + step]
    return sorted(inputs + each for each in moments)[-1]


@torch.inference_mode()
def inference(model, batches):
    model.eval()
    return sum(cross_entropy(model(x), y).item() for x, y in batches) / len(batches)


def three_points(peak_of, budget):
    low, high = peak_of(100), peak_of(300)
    rows = 300 + (budget - high) * 200 // (high - low)
    return rows if peak_of(rows) <= budget else rows - 1


def as_they_come(history):
    added, used, number, numbers = 0, 0, 0, []  # gradients in .grad, and how many of them a step has used
    for call in history:
        if call == "zero":
            added = used = 0
        elif call == "backward":
            added += 1
        else:
            number += 1
            if used:
                numbers.append(number)
            used = added
    return numbers


def divided_first(model, size, all_reduce):
    for p in model.parameters():
        share = p.grad / size
        all_reduce(share)
        p.grad = share


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


def adds_by_difference(backward):
    w = torch.ones(2, requires_grad=True)
    left = []
    for factor in (1.0, 10.0):
        backward((factor * w).sum(), w)
        left.append(w.grad.clone())
    return torch.equal(left[1] - left[0], 10 * left[0]) and bool((left[0] == 1).all())


def by_binary_digits(loop, n):
    w = torch.zeros((), dtype=torch.float64, requires_grad=True)
    loop(torch.optim.SGD([w], lr=1.0), [2**i for i in range(n)], lambda batch: -w * batch)
    return [i for i in range(n) if int(w) >> i & 1]


def by_islice(loader, n):
    batches = iter(loader)
    return iter(lambda: list(islice(batches, n)), [])


RIGHT = {
    "batches_in_grad": [by_torch],
    "windows_of_four": [partial(train_by_hand, window=4)],
    "times_applied": [times_by_counting],
    "keeps_grad": [by_cases],
    "complete_value": [by_torch_tensors, InOrder],
    "two_in_a_row": [two_weights_by_torch],
    "third_arrow": [third_times_zero, third_with_a_copy, third_taken_out_again],
    "gradient_of_each": [sums_first],
    "truncated": [step_by_step],
    "stopped": [emptied, with_friction],
    "mended": [train_by_hand],
    "momentum_by_hand": [momentum_of_torch],
    "step_first": [["step", "forward", "zero_grad", "backward"]],
    "uncleared": [by_trying],
    "two_players": [frozen_meanwhile],
    "trains": [by_training],
    "update_once": [cleared_at_the_end],
    "gradient_norm": [by_torch_gradient_norm],
    "saved": [largest_level],
    "momentum_step": [in_one_line, sgd_of_torch],
    "decay_groups": [by_layer],
    "adamw_path": [adamw_of_torch],
    "windows": [by_islice],
    "by_tokens": [weighted],
    "one_update": [as_a_tensor],
    "smallest_scale": [2**10],
    "amp_order": [[BACKWARD, UNSCALE, CLIP, STEP, UPDATE, ZERO]],
    "scales_after": [by_torch_scales_after],
    "peak_bytes": [two_moments],
    "evaluate": [inference],
    "largest_batch": [three_points],
    "reusing_steps": [as_they_come],
    "average_gradients": [divided_first],
    "all_reduces": [by_windows],
    "fair_average": [after],
    "adds": [adds_by_difference],
    "batches_used": [by_binary_digits],
    "calls_in_order": [
        ["forward", "zero_grad", "backward", "unscale_", "clip", "scaler.step", "scheduler.step", "scaler.update"]
    ],
    "whole_loop": [train_from_a_loader],
}
