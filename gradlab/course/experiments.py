"""Tests of claims from articles, other than the claims that notebook 12 tests itself, on PyTorch's default device."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss
from torch.nn.utils import clip_grad_norm_
from torch.optim import SGD, Adam
from torch.utils.checkpoint import checkpoint_sequential

from .._process import RandomStream
from ..memory import Ledger
from .exercises.loops import all_weights, gradient
from .measured import OperationLog

STACKS = {"large activations": (64, 8, 512), "large layers": (256, 4, 8), "many small layers": (16, 24, 32)}
"""The width, depth and number of samples of each stack of square layers."""
_close = partial(torch.allclose, atol=1e-5)
_Facts = Mapping[str, bool | None]
ClaimFacts = tuple[str, _Facts, _Facts]
"""A claim's code, the facts inside the claim's condition, and the facts beyond the article."""


def _start() -> tuple[nn.Sequential, Tensor, Tensor]:
    with RandomStream(0, cuda=torch.get_default_device().type == "cuda"):
        return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.randn(12, 4), torch.randn(12, 1)


def _grads(model: nn.Module) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def _batch_grads(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return gradient(mse_loss(model(x), y), model)


def _fails(call: Callable[..., object], *args: object) -> bool:
    try:
        call(*args)
    except (AttributeError, RuntimeError, TypeError):
        return True
    return False


def _end(make: Any, clear: bool = True, none: bool = True, updates: int = 9, unused: tuple[int, ...] = ()) -> float:
    """Return the weight ``w`` after training from 2 with the loss ``w**2``; updates in ``unused`` skip backward()."""
    w = nn.Parameter(torch.tensor([2.0]))
    optimizer = make([w], lr=0.1)
    for update in range(updates):
        if clear:
            optimizer.zero_grad(set_to_none=none)
        if update not in unused:
            (w**2).sum().backward()
        optimizer.step()
    return w.item()


def on_backward() -> Iterator[ClaimFacts]:
    """Yield the ClaimFacts for claims A1, A2, A3, A4 and A26, on the results of ``backward()`` and their storage."""
    seeds: list[Tensor] = []
    w = torch.ones(3, requires_grad=True)
    plain, retained = w * 2, w * 3
    retained.retain_grad()
    loss = (plain * retained).sum()
    loss.register_hook(seeds.append)
    loss.backward()
    with warnings.catch_warnings(action="ignore"):  # PyTorch warns when a non-leaf tensor's .grad is read
        facts = {"a leaf keeps it": w.grad is not None, "another tensor holds none": plain.grad is None}
    yield "A1", facts | {"another tensor keeps it after `retain_grad()`": retained.grad is not None}, {}
    facts = {"the loss gets 1": seeds == [1.0]}
    yield "A2", facts, {"a loss of several values starts from 1, too": not _fails((w * w).backward)}
    runs = {size: not _fails(lambda grad: (grad or 0) + 1, torch.ones(size)) for size in (1, 3)}  # by size of .grad
    w = torch.ones(3, requires_grad=True)
    for _ in range(2):
        (2 * w).sum().backward()
    beyond = {"as a program, its line adds one number": runs[1], "it adds a `.grad` of three numbers": runs[3]}
    yield "A3", {"`backward()` adds": w.grad is not None and w.grad.tolist() == [4, 4, 4]}, beyond
    model, x, y = _start()
    start = all_weights(model)
    mse_loss(model(x), y).backward()
    facts = {"`backward()` leaves the weights as they were": torch.equal(all_weights(model), start)}
    SGD(model.parameters(), lr=0.1).step()
    yield "A4", facts | {"`step()` changes them": not torch.equal(all_weights(model), start)}, {}
    x, facts = torch.tensor(3.0, requires_grad=True), {}
    for arriving in (1.0, 5.0):  # call the node of x**2 by hand with two incoming gradients
        node: Any = (x**2).grad_fn
        facts[f"where {arriving:g} arrives, it returns d(x²)/dx = 6"] = node(x.new_tensor(arriving)).item() == 6
    yield "A26", facts, {}


def on_adding() -> Iterator[ClaimFacts]:
    """Yield the ClaimFacts for claims A5, A24, B2, B4, C8, D4 and D5, on ``.grad`` after several batches."""

    def run(*ways: str, lr: float = 0.1, divisor: int = 1) -> tuple[list[Tensor], list[Tensor]]:
        """Return ``.grad`` after each batch, and each batch's own gradient.

        ``ways`` says how to clear before each batch: "None", "zeros", or "" for not at all.
        """
        model, *data = _start()
        optimizer, left, alone = SGD(model.parameters(), lr=lr), [], []
        for way, x, y in zip(ways, *(each.split(3) for each in data), strict=False):
            if way:
                optimizer.zero_grad(set_to_none=way == "None")
            alone.append(_batch_grads(model, x, y) / divisor)
            (mse_loss(model(x), y) / divisor).backward()
            optimizer.step()
            left.append(_grads(model))
        return left, alone

    left, (first, second, third) = run("", "", "")
    mixed = _close(left[1], first + second)
    yield "A5", {"batches mix": mixed, "the update differs from the batch's own": not _close(left[1], second)}, {}
    facts = {"Torch 7 has a call for it, `zeroGradParameters()`": True, "Theano has gradients to zero": False}
    yield "A24", facts, {}  # nothing is run: both facts are from the libraries' documentation
    facts = {"the second print is a sum of two": mixed}
    yield "B2", facts | {"the third is one of three": _close(left[2], first + second + third)}, {}
    facts = {f"after {way}, prints are the batch's": all(map(_close, *run(*[way] * 3))) for way in ("None", "zeros")}
    yield "B4", facts, {}
    left, alone = run(*[""] * 4, lr=0.0, divisor=4)  # the article divides each loss by 4
    yield "C8", {"`.grad` is the sum of the four": _close(left[3], torch.stack(alone).sum(0))}, {}
    (cleared, alone), (uncleared, _) = run("", "None", "", lr=0.0), run("", "", "", lr=0.0)
    facts = {"cleared first, a window of two holds their sum": _close(cleared[2], alone[1] + alone[2])}
    facts["uncleared, an older gradient is in it"] = _close(uncleared[2], torch.stack(alone).sum(0))
    yield "D4", facts, {"the first window needs it, too": not _close(uncleared[1], alone[0] + alone[1])}
    suffers = abs(_end(SGD, clear=False, updates=50)) > abs(_end(SGD, updates=50))
    yield "D5", {"old gradients are added again": mixed, "learning can suffer": suffers}, {}


def on_clearing() -> Iterator[ClaimFacts]:
    """Yield the ClaimFacts for claims A6, A8, A9, A10, A25, B1, B5, B9, C1 and C11, on what ``zero_grad()`` changes."""
    weights: list[Tensor] = []

    def left(*names: str, part: slice = slice(0, 3), **flag: bool) -> list[str]:
        """Return the state of each .grad, "None", "zeros" or "numbers", after backward() and the calls ``names``."""
        model, x, y = _start()
        optimizer, loss = SGD(model[part].parameters(), lr=0.1), mse_loss(model(x), y)
        loss.backward(retain_graph=True)
        calls = {"optimizer": optimizer.zero_grad, "model": model.zero_grad, "backward": loss.backward}
        for name in names:
            calls[name](**flag if name != "backward" else {})
        weights.append(all_weights(model))
        optimizer.step()
        grads = [p.grad for p in model.parameters()]
        return ["None" if grad is None else "numbers" if grad.any() else "zeros" for grad in grads]

    default, of_model, both = left("optimizer"), left("model"), left("optimizer", "model")
    none, zeros = left("optimizer", set_to_none=True), left("optimizer", set_to_none=False)
    subset, model_of_subset = left("optimizer", part=slice(2, 3)), left("model", part=slice(2, 3))
    again = left("optimizer", "backward", set_to_none=True)
    unchanged = all(torch.equal(each, all_weights(_start()[0])) for each in weights)
    facts = {"the optimizer has all: the same": default == of_model}
    yield "A6", facts | {"it has a subset: they differ, as the article says": subset != model_of_subset}, {}
    w = nn.Parameter(torch.ones(1))
    w.grad = old_grad = torch.ones(1)
    SGD([w]).zero_grad(set_to_none=False)
    facts = {"`zero_grad()` leaves zeros, as the line does": "zeros" in default}
    facts["`.grad` becomes a new tensor, as in the line"] = w.grad is not old_grad
    yield "A8", facts, {"`zero_grad(set_to_none=False)` leaves zeros": zeros == ["zeros"] * 4}
    facts = {"the optimizer leaves the first layer's": subset[:2] == ["numbers"] * 2}
    yield "A9", facts | {"the model clears them": "numbers" not in model_of_subset, "that is usually fine": None}, {}
    yield "A25", {"one call is enough": default == of_model == both}, {}
    yield "B1", {"weights stay, with None and with zeros": unchanged}, {}
    for code in ("B9", "C11"):
        yield code, {"without an argument, all are set to zero": default == ["zeros"] * 4}, {}
    facts = {"set to 0, the buffers stay": "None" not in zeros}
    yield "C1", facts, {"after `zero_grad()` without an argument they stay": "None" not in default}
    facts = {"it deletes the gradient": none == ["None"] * 4, "`backward()` makes it again": again == ["numbers"] * 4}
    yield "A10", facts, {"the gradient stays without the argument": default != none}
    facts = {"right after clearing, there is a None to check for": "None" in none}
    yield "B5", facts | {"its `if` shows the change: after the step it finds one": "None" in again}, {}


def on_rules() -> Iterator[ClaimFacts]:
    """Yield the ClaimFacts for claims A12, A17, A18, A19 and B8, on clipping, loss scaling, and ten optimizers."""
    _, x, y = _start()

    def crashes(clip: Callable[..., object]) -> bool:
        heads = nn.ModuleList([nn.Linear(4, 1), nn.Linear(4, 1)])
        heads[0](x).sum().backward()  # heads[1] is not used, so its weights have no gradient
        return _fails(clip, list(heads.parameters()), 1.0)

    facts = {"your own loop needs the check": crashes(lambda weights, most: [p.grad / most for p in weights])}
    yield "A12", facts | {"`clip_grad_norm_()`, which the article calls, needs it": crashes(clip_grad_norm_)}, {}

    def step(clipped: str, scale: float = 1.0) -> Tensor:
        """Return the step of SGD (lr 1) after three batches; ``clipped`` says when to clip to norm 0.1, or is ""."""
        model, *_ = _start()
        before, optimizer = all_weights(model), SGD(model.parameters(), lr=1.0)
        scaler = torch.amp.GradScaler(x.device.type, init_scale=scale)
        for px, py in zip(x.split(4), y.split(4), strict=True):
            scaler.scale(mse_loss(model(px), py) / 3).backward()
            clip_grad_norm_(model.parameters(), 0.1 if clipped == "every backward" else torch.inf)
        clip_grad_norm_(model.parameters(), 0.1 if clipped == "scaled" else torch.inf)
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 0.1 if clipped == "unscaled" else torch.inf)
        scaler.step(optimizer)
        return before - all_weights(model)

    large = _batch_grads(*_start())
    wanted = large * (0.1 / large.norm()).clamp(max=1)
    facts = {"clipped after the window, it is the large batch's step": _close(step("unscaled"), wanted)}
    facts["clipped after every `backward()`, it differs"] = not _close(step("every backward"), wanted)
    yield "A17", facts | {"clipped after `step()`, it differs": not _close(step(""), wanted)}, {}
    norms = [step(clipped, scale=1024.0).norm().item() for clipped in ("unscaled", "scaled")]
    facts = {f"unscaled first, the step is 0.1 long ({norms[0]:.4f})": abs(norms[0] - 0.1) < 1e-3}
    yield "A18", facts | {f"clipped first, it is shorter ({norms[1]:.4f})": norms[1] < 0.099}, {}
    facts, beyond = {}, {}
    for name in ("GradScaler", "autocast"):
        with warnings.catch_warnings(record=True, action="always") as caught:
            beyond[f"`{name}()` still works"] = works = not _fails(lambda name=name: getattr(torch.cuda.amp, name)())
        warned = any(issubclass(each.category, (FutureWarning, DeprecationWarning)) for each in caught)
        facts[f"`{name}()` works without a warning"] = works and not warned
    yield "A19", facts, beyond
    names = ["SGD", "Adam", "AdamW", "Adagrad", "RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop"]
    optimizers, pause = [getattr(torch.optim, name) for name in names], (3, 4, 5)
    changed = sum(_end(make) != _end(make, clear=False) for make in optimizers)
    same = sum(_end(make) == _end(make, none=False) for make in optimizers)
    unused = sum(_end(make, unused=pause) == _end(make, none=False, unused=pause) for make in optimizers)
    facts = {f"forgetting to clear changes the training with most ({changed} of 10)": changed > 5}
    facts[f"None and zeros train alike with most ({same} of 10)"] = same > 5
    yield "B8", facts, {f"so they do if the weight is unused for a while ({unused} of 10)": unused > 5}


def _cost(shape: tuple[int, ...], none: bool = True, window: int = 1, segments: int = 0, make: Any = SGD) -> list[int]:
    """Return the operation count, bytes moved and peak bytes of a model's second update; ``shape`` is as in STACKS."""
    width, depth, samples = shape
    model = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)])
    optimizer, x = make(model.parameters(), lr=0.001), torch.ones(samples, width)
    for _ in range(2):
        with Ledger(model, optimizer, x) as ledger, OperationLog() as log:
            optimizer.zero_grad(set_to_none=none)
            for part in x.chunk(window):
                y = checkpoint_sequential(model, segments, part, use_reentrant=False) if segments else model(part)
                (y.square().mean() / window).backward()
            optimizer.step()
    return [len(log.names), log.moved, ledger.peak]


def on_costs() -> Iterator[ClaimFacts]:
    """Yield the ClaimFacts for claims A11, A21, A22, B6, C5, C7 and C10, on operations, bytes moved and peak memory."""
    costs = {name: (_cost(shape), _cost(shape, none=False)) for name, shape in STACKS.items()}
    (operations, moved, _), (operations_zeros, moved_zeros, _) = costs["large layers"]
    on_gpu, fewer = torch.get_default_device().type == "cuda", operations < operations_zeros
    facts = {f"fewer bytes move ({moved:,} against {moved_zeros:,})": moved < moved_zeros}
    facts[f"fewer operations run ({operations} against {operations_zeros})"] = fewer
    yield "A11", facts | {"fewer kernels are launched, which needs a GPU": fewer if on_gpu else None}, {}
    lower, cheaper = {}, {}
    for name, (none, zeros) in costs.items():
        peaks = f"({none[2] / 2**20:.2f} against {zeros[2] / 2**20:.2f} MiB)"
        lower[f"the peak is lower with {name} {peaks}"] = none[2] < zeros[2]
        cheaper[f"more efficient with {name}"] = none[0] < zeros[0] and none[1] < zeros[1] and none[2] <= zeros[2]
    adam = _cost(STACKS["large layers"], make=Adam)[2] < _cost(STACKS["large layers"], none=False, make=Adam)[2]
    yield "B6", lower | facts, {"the peak is lower with large layers and Adam": adam}
    facts = {"512 samples with zeros, or 544 with None": _cost((64, 8, 544))[2] <= costs["large activations"][1][2]}
    facts["layers of 256 with zeros, or of 272 with None"] = _cost((272, 4, 8))[2] <= costs["large layers"][1][2]
    yield "C5", facts, {"with Adam, layers of 264 with None": adam}
    small, large, less_often = (
        1 - _cost(shape, window=window)[1] / _cost(shape, none=False, window=window)[1]
        for shape, window in (((16, 4, 8), 1), ((256, 4, 8), 1), ((256, 4, 32), 4))
    )
    more = _cost((16, 4, 8), none=False)[2] - _cost((16, 4, 8))[2]
    facts = {f"small layers need less than 0.1 MiB more with zeros ({more:,} bytes)": more < 2**20 / 10}
    facts["the training is the same, all weights used"] = _end(SGD) == _end(SGD, none=False)
    yield "C7", {**facts, "it is fast enough": None}, {}
    facts = {
        f"with 8 samples, what None saves depends on size ({small:.0%} of the bytes, or {large:.0%})": small < large
    }
    facts[f"it depends on how often you step (after four batches {less_often:.0%})"] = less_often < large
    yield "C10", cheaper | facts, {}
    cures: dict[str, Any] = {"accumulation": {"window": 4}, "checkpointing": {"segments": 3}}
    shrinks: dict[str, dict[str, bool]] = {"large activations": {}, "large layers": {}}
    for name, cure in ((name, cure) for name in shrinks for cure in cures):
        share = _cost(STACKS[name], **cures[cure])[2] / costs[name][0][2]
        shrinks[name][f"{cure} takes a tenth off the peak with {name} (to {share:.0%})"] = share <= 0.9
    yield "A22", {**shrinks["large activations"], "a large batch is the likely cause": None}, shrinks["large layers"]
    layer, x, shares = nn.Linear(1024, 1024, device="cpu"), torch.ones(1024, 1024, device="cpu"), []
    for _ in range(8):  # the smallest of eight measurements counts, because a busy machine adds delays
        begin = time.perf_counter()
        layer(x).sum().backward()
        computed = time.perf_counter()
        layer.zero_grad(set_to_none=False)
        shares.append((time.perf_counter() - computed) / (time.perf_counter() - begin))
    facts = {"before the transfer, gradients are zeroed on the CPU": not _grads(layer).any()}
    facts["this takes a tenth of an update's time, or more"] = min(shares) >= 0.1
    on_the_gpu = {"after it, they are zeroed on the GPU": _grads(layer.cuda()).is_cuda if on_gpu else None}
    yield "A21", facts | on_the_gpu, {}


def on_filling() -> Iterator[ClaimFacts]:
    """Yield the ClaimFacts for claims C2, C3 and C4, on ``backward()`` when ``.grad`` is None or a tensor of zeros."""
    model, x, _ = _start()
    fresh, weight = list[int](), next(model.parameters())
    weight.register_hook(lambda grad: fresh.append(grad.data_ptr()))
    logs, is_fresh = {}, {}
    for way in ("computed", "None", "zeros"):
        model.zero_grad(set_to_none=way != "zeros")
        loss = model(x).square().mean()
        with OperationLog() as logs[way]:
            _ = torch.autograd.grad(loss, list(model.parameters())) if way == "computed" else loss.backward()
        grad = weight.grad
        is_fresh[way] = grad is not None and grad.data_ptr() == fresh[-1]
    facts = {"`backward()` adds to zeros": "add_" in logs["zeros"].names}
    facts["the sum is the new gradient"] = _close(_grads(model), _batch_grads(model, x, torch.zeros(12, 1)))
    yield "C2", facts, {"it adds after `zero_grad()` without an argument, too": "add_" in logs["None"].names}
    facts = {"after None, `.grad` is the fresh tensor itself": is_fresh["None"]}
    facts["nothing is added then"] = "add_" not in logs["None"].names
    yield "C3", facts | {"after zeros it is another tensor": not is_fresh["zeros"]}, {}
    size = sum(p.nbytes for p in model.parameters())
    read, written = ((getattr(logs["zeros"], of) - getattr(logs["computed"], of)) / size for of in ("read", "written"))
    facts = {f"adding reads {read:g} times the bytes of `.grad` and writes {written:g}": read == 2 and written == 1}
    facts["with None fewer bytes are moved"] = logs["None"].moved < logs["zeros"].moved
    beyond = {"with None the gradient is written once more": logs["None"].moved > logs["computed"].moved}
    yield "C4", {**facts, "transfers are often what limits a GPU": None}, beyond


SUBJECTS = (on_backward, on_adding, on_clearing, on_rules, on_costs, on_filling)
