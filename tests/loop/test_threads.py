"""Runs beside other threads: each trains as if it were alone, and so does what the other threads draw."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor, nn

from gradlab import Recipe, Run
from gradlab.scenes.from_run import HeldOutLoss
from gradlab.tasks import HeldOutImages, Task

pytestmark = pytest.mark.slow

DRAWS = 60_000


def with_dropout() -> Task:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(64, 8, generator=generator)
    return Task(
        name="dropout",
        builder=lambda seed: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 1)),
        batches=list(zip(x.split(8), x.sum(1, keepdim=True).split(8), strict=True)),
        loss_fn=nn.functional.mse_loss,
    )


def weights_after(run: Run, updates: int, *, by: str) -> list[Tensor]:
    """Train in slices, or statement by statement, so that two threads take turns in between."""
    while run.updates < updates:
        if by == "statements":
            run.run_statement()
        else:
            run.advance(updates=min(5, updates - run.updates))
    return [parameter.detach().clone() for parameter in run.model.parameters()]


@pytest.mark.parametrize("by", ["updates", "statements"])
def test_two_runs_in_two_threads_train_as_each_does_alone(by: str) -> None:
    updates = 120 if by == "updates" else 40
    recipes = [Recipe(lr=0.01), Recipe(lr=0.01, optimizer="adam", zero_grad=False)]
    alone = [weights_after(Run(with_dropout(), recipe, seed), updates, by=by) for seed, recipe in enumerate(recipes)]
    torch.manual_seed(7)
    before = torch.get_rng_state()
    together: dict[int, list[Tensor]] = {}
    start = threading.Barrier(2)

    def train(seed: int, recipe: Recipe) -> None:
        start.wait()
        together[seed] = weights_after(Run(with_dropout(), recipe, seed), updates, by=by)

    threads = [threading.Thread(target=train, args=pair) for pair in enumerate(recipes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed, expected in enumerate(alone):
        for mine, theirs in zip(expected, together[seed], strict=True):
            assert torch.equal(mine, theirs), f"run {seed} depends on the other thread"
    assert torch.equal(torch.get_rng_state(), before)


class Noise(nn.Module):
    """Draws in evaluation, too."""

    def forward(self, x: Tensor) -> Tensor:
        return x + 0.1 * torch.randn_like(x)


def build_with_numbers(seed: int) -> nn.Module:
    """Build a model as learners do: it seeds torch itself, and draws before and after."""
    start = torch.rand(1)
    torch.manual_seed(seed + 1)
    model = nn.Sequential(nn.Linear(8, 16), nn.RReLU(), Noise(), nn.Dropout(0.5), nn.Linear(16, 1))
    with torch.no_grad():
        model[0].bias.add_(start + torch.randn(1))
    return model


def train_reset_and_switch() -> list[Tensor]:
    """Do all that a run can do with random numbers; return its weights on the way, and losses of an evaluation."""
    task = with_dropout()
    x, y = task.batches[0]
    picture = HeldOutImages(x, y, (2, 4))
    task = Task("dropout", build_with_numbers, task.batches, task.loss_fn, picture=picture)
    run, results = Run(task, Recipe(lr=0.01), 5), []
    held_out = HeldOutLoss(run)

    def note(updates: int) -> None:
        results.extend(weights_after(run, run.updates + updates, by="updates"))
        results.append(torch.tensor([float(loss) for loss in held_out.curve().mean]))

    note(20)
    copy = run.unswitched()
    run.switch(Recipe(lr=0.01, optimizer="adam", accumulate=2))
    for _ in range(60):
        run.run_statement()
    note(10)
    copy.follow(run.updates, 1e6)
    results += [parameter.detach().clone() for parameter in copy.model.parameters()]
    run.edit(run.source.replace("loss.backward()", "(loss * torch.rand(1)).backward()"))
    note(10)
    run.reset()
    note(10)
    run.close()
    return results


def draw_until(over: threading.Event) -> list[float]:
    """Seed torch and draw, DRAWS numbers at least."""
    torch.manual_seed(3)
    drawn = []
    while len(drawn) < DRAWS or not over.is_set():
        drawn += [torch.rand(1).item(), torch.randn(1).item()]
    return drawn


@pytest.mark.parametrize("where", ["draws on a thread", "run on a thread"])
def test_draws_and_run_beside_each_other_are_as_alone(where: str) -> None:
    alone = train_reset_and_switch()
    over = threading.Event()

    def train() -> list[Tensor]:
        try:
            return train_reset_and_switch()
        finally:
            over.set()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # from here on there is a thread that waits
        if where == "run on a thread":
            training = pool.submit(train)
            drawn, trained = draw_until(over), training.result()
        else:
            drawing = pool.submit(draw_until, over)
            trained, drawn = train(), drawing.result()
    assert len(trained) == len(alone)
    assert all(map(torch.equal, trained, alone))
    torch.manual_seed(3)
    assert drawn == [value for _ in range(len(drawn) // 2) for value in (torch.rand(1).item(), torch.randn(1).item())]


@pytest.mark.filterwarnings("ignore:.*jit.script_method")
def test_a_compiled_model_is_refused_beside_a_thread() -> None:
    task = with_dropout()
    run = Run(Task("compiled", lambda seed: torch.compile(task.builder(seed)), task.batches, task.loss_fn))
    over = threading.Event()

    def wait() -> None:
        over.wait()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(wait)
        try:
            with pytest.raises(RuntimeError, match="Compiled code draws from PyTorch's global random"):
                run.advance(updates=1)
        finally:
            over.set()
    assert run.updates == 0
