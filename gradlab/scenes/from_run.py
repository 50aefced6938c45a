"""Scenes that are read from a run without any effect on the training, even if the model has to be evaluated."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call

from .._process import RandomStream
from ..gradients import Contribution, within
from ..loop import Counterfactual, History, HistoryWriter, Run
from ..memory import CATEGORIES, MemoryPoint
from ..tasks import HeldOutImages, TwoWeights
from .camera import Camera, needed_reach
from .kinds import (
    Arrows,
    BatchArrow,
    Contours,
    Curve,
    Landscape,
    Memory,
    PanelName,
    Samples,
    ScalerHistory,
    Scene,
    UnswitchedCurve,
)
from .sentences import memory_scene

_MIN_ARROWS = 4  # number of newest contributions that have their own arrows, if the accumulation window is not longer
_SHOWN_DIGITS = 12
_SURFACE_POINTS = 41  # number of points along each side of the square of weights that the contours cover
_MAX_HALF_SIDE = 1e6  # largest half-width of the contours' square, in units of the weights
_GROWTH = 1.5  # smallest factor by which the contours' square grows
_PATH_MARGIN = 1.6  # half-width of a new square in units of the path's distance from the centre, so that arrows fit


class RunScenes:
    """The scenes of one run, with a cache for the contours, which are costly and rarely change."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.unswitched: Counterfactual | None = None  # copy of the run without its newest switch, also drawn
        self._held_out: HeldOutLoss | None = None
        self._unswitched_held_out: HeldOutLoss | None = None
        self._camera = Camera(flat=not run.record.is_two_weights)
        self._surface: Contours | None = None
        self._path_has_arrows = False
        self._surface_of = 0  # number of the newest batch when ``_surface`` was computed or last checked
        self._half = 0.0  # half-width of the square that ``_surface`` covers

    def names(self) -> list[PanelName]:
        """Return the names of the panels that the run can show; only a loop with a GradScaler has the loss scale."""
        names = [PanelName.LOSS, PanelName.GRADIENT]
        if isinstance(self.run.task.picture, HeldOutImages):
            names += [PanelName.PICTURE, PanelName.HELD_OUT]
        if self.run.record.is_two_weights:
            names.append(PanelName.LANDSCAPE)
        names.append(PanelName.MEMORY)
        if self.run.loop.scalers:
            names.append(PanelName.SCALER)
        return names

    def scene(self, name: PanelName) -> Scene:
        """Return the scene of the panel ``name``, from the method with the corresponding name."""
        return getattr(self, name.name.lower())()

    def loss(self) -> Curve:
        """Return the loss over updates and, as a second curve, the loss of the copy ``unswitched`` if there is one."""
        curve, copy = loss_curve(self.run.record), self.unswitched
        return curve if copy is None else self._with_unswitched(curve, loss_curve(copy.record))

    def held_out(self) -> Curve:
        """Return the loss on the held-out examples over the updates since the first call to ``watch_held_out``."""
        curve, copy = self.watch_held_out().curve(), self._unswitched_held_out
        return curve if copy is None else self._with_unswitched(curve, copy.curve())

    def watch_for(self, panels: Collection[PanelName]) -> None:
        """From now on, record contributions to ``.grad`` and the held-out loss, each only if ``panels`` show it."""
        alone = PanelName.LANDSCAPE in panels and PanelName.GRADIENT not in panels
        self._path_has_arrows = alone and self.run.record.is_two_weights  # only one panel shows the arrows
        self.run.watch_gradients = PanelName.GRADIENT in panels or self._path_has_arrows
        if PanelName.HELD_OUT in panels:
            self.watch_held_out()

    def watch_unswitched(self, unswitched: Counterfactual) -> None:
        """Measure the held-out loss after each update of ``unswitched``, the run's copy without the newest switch."""
        self._unswitched_held_out = HeldOutLoss(unswitched)

    def _with_unswitched(self, curve: Curve, other: Curve) -> Curve:
        run = self.unswitched
        if run is None or not len(other.updates):
            return curve
        return replace(curve, unswitched=UnswitchedCurve(other.updates, other.mean, run.switched, other.now, run.ended))

    def watch_held_out(self) -> HeldOutLoss:
        """Return the run's HeldOutLoss, which measures the held-out loss after each update since the first call."""
        if self._held_out is None:
            self._held_out = HeldOutLoss(self.run)
        return self._held_out

    def gradient(self) -> Arrows:
        """Return Arrows of the contributions to ``.grad`` that the run has recorded, and update the pictures' scale."""
        run, scale = self.run, self.run.loop.scale_in_grad()
        contents = run.provenance.contents()
        measured = run.provenance.contributions(scale, contents)
        parts = measured.parts if measured else ()
        vectors = measured.vectors if measured else None
        arrows = _arrows(parts, vectors, run.recipe.accumulate)
        total, contours, path, move = (contents.norm / scale, 0.0), None, list[tuple[float, float]](), None
        params = run.provenance.params
        if run.record.is_two_weights:
            flat = torch.cat([p.new_zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in params])
            total, contours, path = tuple((flat.float() / scale).tolist()), self._contours(), self._path()
            arrows = [] if vectors is None else arrows
            if run.recipe.optimizer == "sgd" and not run.loop.is_edited and arrows and not arrows[-1].applied[0]:
                move = (-run.recipe.lr * total[0], -run.recipe.lr * total[1])
        else:
            arrows = lay_flat(arrows)
        if contents.holds:
            xs, ys = accumulate(arrow.x for arrow in arrows), accumulate(arrow.y for arrow in arrows)
            ends = [total, *zip(xs, ys, strict=True)]
            length, need = arrows[-1].length if arrows else 0.0, needed_reach(ends, flat=not contours)
            self._camera.observe(run.source, run.provenance.backwards, need, length, usual=not contents.reused)
        elements = 0 if contours else sum(param.numel() for param in params)
        reach, one_batch = self._camera.reach, self._camera.one_batch
        is_known, holds = measured is not None, contents.holds
        return Arrows(arrows, total, holds, contours, is_known, elements, reach, path, move, one_batch)

    def _path(self) -> list[tuple[float, float]]:
        path = self.run.record.path
        return list(zip(path["x"], path["y"], strict=True))

    def landscape(self) -> Landscape:
        """Return contours, the path of the weights and, if no gradient panel is shown, the arrows of ``.grad``."""
        return Landscape(self._contours(), self._path(), self.gradient() if self._path_has_arrows else None)

    def memory(self) -> Memory:
        """Return bytes by category in the updates that were watched last, or the current bytes if there are none."""
        run = self.run
        now = dict.fromkeys(CATEGORIES, 0) | run.footprint()
        watched = [update for update in run.watched if update[1]] or [(run.updates, [MemoryPoint("now", "", now, now)])]
        numbers = [(name, part) for name, part in run.model.named_modules() if name.rpartition(".")[2].isdigit()]
        kinds = {name: f"{name} {type(part).__name__}" for name, part in numbers}  # "2 ReLU" instead of "2"
        scene = memory_scene(watched)
        gaps = [later - earlier for (earlier, _), (later, _) in pairwise(watched)]
        on_cuda = run.task.device.startswith("cuda")
        return replace(
            scene,
            updates=scene.updates if run.watched else [],
            modules=[kinds.get(name, name) for name in scene.modules],
            capacity=self.capacity(),
            allocated=torch.cuda.memory_allocated() if on_cuda else None,
            reserved=torch.cuda.memory_reserved() if on_cuda else None,
            note=f"1 update in {max(gaps):,} is watched" if gaps and max(gaps) > 1 else "",
        )

    def capacity(self) -> tuple[str, int] | None:
        """Return the name and the total bytes of the run's GPU, or None if the run is not on a CUDA device."""
        if not self.run.task.device.startswith("cuda"):
            return None
        gpu = torch.cuda.get_device_properties(self.run.task.device)
        return gpu.name.removeprefix("NVIDIA ").removeprefix("Tesla "), gpu.total_memory

    def scaler(self) -> ScalerHistory:
        """Return the loss scale, the skipped updates, and the share of gradients that would underflow unscaled."""
        rows = self.run.record.rows
        return ScalerHistory(rows["update"], rows["scale"], self.run.record.skipped, rows["underflow"])

    def picture(self) -> Samples:
        """Return the first held-out images with the model's predictions, and the accuracy on all held-out images."""
        model, device, picture = self.run.model, self.run.task.device, self.run.task.picture
        with evaluating(model):
            predicted = model(picture.x.to(device)).argmax(1).cpu()
        images = picture.x[:_SHOWN_DIGITS].reshape(-1, *picture.shape).tolist()
        right = float((predicted == picture.y).float().mean())
        return Samples(images, predicted[:_SHOWN_DIGITS].tolist(), picture.y[:_SHOWN_DIGITS].tolist(), right)

    def about_batch(self, number: int) -> str:
        """Return sentences on a batch: its position in the epoch, and whether it is in ``.grad`` and was applied."""
        provenance = self.run.provenance
        provenance.sync()
        if not 1 <= number <= provenance.backwards:
            return f"Batch {number:,} has had no backward pass yet."
        count = len(self.run.task.batches)
        epoch, index = divmod(number - 1, count)
        times, state = provenance.times_applied(number), "It is no longer in .grad"
        if any(within(number, history.batches) for history in provenance.histories):
            state = ("It is in .grad, and no step has applied it yet", "One step has applied it")[min(times, 1)]
            state = state if times < 2 else f"It has been applied {times:,} times, and it is still in .grad"
        return f"Batch {number:,} is number {index + 1:,} of the {count:,} in epoch {epoch + 1:,}. {state}."

    def _contours(self) -> Contours:
        """Return contours in a square around the task's minimum, which grows when the path comes close to the edge."""
        if self._surface is not None and self._surface_of == self.run.provenance.backwards:
            return self._surface
        self._surface_of = self.run.provenance.backwards
        path, picture = self.run.record.path, self.run.task.picture
        centre = picture.minimum if isinstance(picture, TwoWeights) else (0.0, 0.0)
        finite = [value for value in (*path["x"], *path["y"]) if math.isfinite(value)]
        far = [abs(end - c) for end in (min(finite), max(finite)) for c in centre] if finite else [1.0]
        need = min(_PATH_MARGIN * max(far), _MAX_HALF_SIDE) or 1.0
        if self._surface is None or need > self._half:
            # The first square just fits. Each later square is wider by half or more, so that a diverging run needs few.
            self._half = max(need, _GROWTH * self._half)
            self._surface = _loss_surface(self.run, centre, self._half)
        return self._surface


def _arrows(parts: Sequence[Contribution], vectors: Tensor | None, window: int) -> list[BatchArrow]:
    """Return an arrow for each of the ``window`` newest contributions or more, and one for each group of older ones.

    Older neighbours form a group if all were never applied, all once, or all more than once. With two weights, ``x``
    and ``y`` of an arrow are the contribution itself; otherwise ``x`` is the projection onto the sum, and ``y`` is 0.
    """
    singles, styles = max(_MIN_ARROWS, window), [min(part.applied[0], 2) for part in parts]
    older = len(parts) - singles if len(parts) > singles + 1 else 0
    cuts = [index for index in range(len(parts) + 1) if not 0 < index < older or styles[index] != styles[index - 1]]
    arrows = []
    for first, last in pairwise(cuts):
        members = parts[first:last]
        numbers = [number for part in members for number in part.batches or ()]
        span = (min(numbers), max(numbers)) if numbers else None
        x, y, share = math.fsum(part.along for part in members), 0.0, math.fsum(part.share for part in members)
        length = members[0].length
        if vectors is not None and (vectors.shape[1] == 2 or len(members) > 1):
            whole = vectors[first:last].sum(0)
            length = float(whole.norm())
            x, y = whole.tolist() if len(whole) == 2 else (x, y)
        arrows.append(BatchArrow(span, x, y, share, (members[-1].applied[0], members[0].applied[1]), length=length))
    return arrows


def lay_flat(arrows: Sequence[BatchArrow]) -> list[BatchArrow]:
    """Return arrows with the extent across the sum as ``y``, signed and scaled so that all ``y`` add up to 0."""
    height, asides = 0.0, []
    for arrow in arrows:
        along = abs(arrow.x)
        aside = math.sqrt(max(arrow.length - along, 0.0)) * math.sqrt(arrow.length + along)
        asides.append(aside if height <= 0 else -aside)
        height += asides[-1]
    up, down = math.fsum(y for y in asides if y > 0), -math.fsum(y for y in asides if y < 0)
    times = ((up + down) / (2 * up), (up + down) / (2 * down)) if up and down else (0.0, 0.0)
    return [replace(arrow, y=y * times[y < 0]) for arrow, y in zip(arrows, asides, strict=True)]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Within a ``with`` block, put ``model`` in evaluation mode, without gradients and with the random seed 0."""
    on_gpu = any(parameter.is_cuda for parameter in model.parameters())
    modes = [(module, module.training) for module in model.modules()]
    try:
        with torch.no_grad(), RandomStream(0, cuda=on_gpu):
            model.eval()
            yield
    finally:
        for module, training in modes:
            module.training = training


def loss_curve(history: History) -> Curve:
    """Return the losses in ``history`` as a Curve."""
    rows = history.rows
    switches = tuple(history.switches)
    return Curve(rows["update"], rows["loss"], rows["low"], rows["high"], switches, history.broken, history.loss)


class HeldOutLoss:
    """The loss of a run on its task's held-out examples, measured after each update since this object was created."""

    def __init__(self, run: Run | Counterfactual) -> None:
        """Measure the loss after each update of ``run``. Raises ValueError if its task has no held-out examples."""
        if run.task.held_out is None:
            raise ValueError(f"HeldOutLoss: the run's task must have held-out examples, but {run.task.name!r} has none")
        self._run = run
        self._x, self._y = (part.to(run.task.device) for part in run.task.held_out)
        self._begin(run.updates)
        run.after_update = self._measure

    def curve(self) -> Curve:
        """Return the measured losses as a Curve."""
        if self._run.updates < self._last:  # the run was reset, and has made no update since
            self._begin(self._run.updates)
        self._writer.flush()
        switches = tuple(self._run.record.switches)
        return replace(loss_curve(self._writer.record), switches=switches, title="held-out loss")

    def _begin(self, updates: int) -> None:
        self._writer, self._last = HistoryWriter(updates=updates), updates

    def _measure(self) -> None:
        if self._run.updates <= self._last:
            self._begin(self._run.updates - 1)
        self._last = self._run.updates
        model = self._run.model
        with evaluating(model):
            self._writer.updated([self._run.task.loss_fn(model(self._x), self._y)], None, False)


def _loss_surface(run: Run, centre: tuple[float, float], half: float) -> Contours:
    model, task = run.model, run.task
    x, y = (torch.linspace(c - half, c + half, _SURFACE_POINTS) for c in centre)
    weights = torch.stack([x.repeat(_SURFACE_POINTS), y.repeat_interleave(_SURFACE_POINTS)], 1).to(task.device)
    params = dict(model.named_parameters())
    batches = list({id(batch): batch for batch in task.batches}.values())

    def loss(two: Tensor) -> Tensor:
        values = two.split([param.numel() for param in params.values()])
        parts = {name: each.reshape(param.shape) for (name, param), each in zip(params.items(), values, strict=True)}
        call = lambda *args, **named: functional_call(model, parts, args, named)  # noqa: E731 - called like a model
        return torch.stack([task.loss_of(call, batch) for batch in batches]).mean()

    with evaluating(model):
        surface = torch.func.vmap(loss)(weights).reshape(_SURFACE_POINTS, _SURFACE_POINTS)
    return Contours(x.tolist(), y.tolist(), surface.tolist())
