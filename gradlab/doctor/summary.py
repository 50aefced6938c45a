"""The sentences of a report that are about the watch as a whole: what ran, how it ended, and what was checked."""

from __future__ import annotations

from .._frames import Owner, code_owner, raised_at
from ..formatting import number_of
from .events import MANUAL_UPDATE, Backward, Clip, Forward, Mode, Schedule, Step
from .runner import RuleRunner

_MOST_NAMED = 4  # optimizers
_MOST_LETTERS = 100  # of an error
_COUNTED: dict[type, tuple[str, str]] = {
    Backward: ("backward pass", "es"),
    Step: ("step", "s"),
    Clip: ("clip", "s"),
    Schedule: ("scheduler step", "s"),
    Forward: ("model call", "s"),
    Mode: ("train() or eval() call", "s"),
}
_COMPILED = (
    "the inside of the compiled model, for a softmax or sigmoid before the loss, shapes that broadcast, and the "
    "operation of a NaN"
)


def watched_words(runner: RuleRunner, beside: list[str], *, ended: bool, processes: int) -> str:
    """Return what ran: backward passes, and the updates of each optimizer; ``beside`` are threads not followed."""
    passes, steps, followed = runner.log.passes, runner.log.steps, runner.log.thread.followed
    if beside and followed:
        return (
            f"{1 + len(beside)} threads trained ({_few([followed, *beside])}), and the doctor can follow only one. "
            "Let a single thread train, such as with max_workers=1, and run it again."
        )
    if passes.count or steps:
        where = f"the thread {followed}: " if followed else ""
        words = f"Watched {where}{number_of(passes.count, 'backward pass', 'es')}, {_updates(runner)}."
        processes = 0
    elif passes.grad_calls:
        calls = number_of(passes.grad_calls, "call")
        return f"No backward() and no step: {calls} of torch.autograd.grad, which fill no .grad."
    elif ended:
        words = "No backward pass and no step."
    else:
        words = "Nothing was trained in this process while the doctor watched: no backward pass and no step."
    if beside:
        words += f" Other threads trained, too, and were not watched ({_few(beside)})."
    elif processes:
        started = number_of(processes, "process", "es")
        words += (
            f" The training may have been in the {started} that it has started."
            " Use watch() inside the function that the process runs."
        )
    return words


def _few(names: list[str]) -> str:
    return ", ".join(names[:_MOST_NAMED])


def _updates(runner: RuleRunner) -> str:
    context, state = runner.context, runner.context.state
    if len(state.optimizers) > _MOST_NAMED:
        updates = number_of(sum(state.step_calls.values()), "update")
        return f"{updates} of {number_of(len(state.optimizers), 'optimizer')}"
    steps = [
        f"{number_of(state.step_calls.get(at, 0), 'update')} "
        + ("by your own lines" if at == MANUAL_UPDATE else f"of {context.full_name(at)}")
        for at in state.optimizers
    ]
    return ", ".join(steps) or "no optimizer"


def ending_words(error: BaseException | None) -> str:
    """Return how a block ended: "The block ended with ValueError in line 12 (no label)"; "" if it ended well."""
    if error is None or isinstance(error, SystemExit):  # a program that exits says so by its code
        return ""
    place = raised_at(error, lambda file: code_owner(file) is Owner.USER)
    lines = str(error).strip().splitlines()
    where, why = f" in line {place[1]}" if place else "", f" ({lines[0][:_MOST_LETTERS]})" if lines else ""
    return f"The block ended with {type(error).__name__}{where}{why}"


def checked_words(runner: RuleRunner, beside: list[str]) -> str:
    """Return the last line of a report: what the rules have looked at, with counts, and what they could not judge."""
    log, made_by = runner.log, runner.context.state.optimizers.values()
    if not (log.passes.count or log.steps):
        return ""
    parts = [number_of(runner.counts[kind], *words) for kind, words in _COUNTED.items() if runner.counts[kind]]
    parts += [f"{number_of(runner.looks, 'loss', 'es')} looked at in detail"] if runner.looks else []
    kinds = sorted({made.kind for made in made_by if made.is_custom_class and made.optimizer != MANUAL_UPDATE})
    reasons = [
        _COMPILED if log.passes.compiled else "",
        f"the inside of the step of {_few(kinds)}, which is not PyTorch's" if kinds else "",
        f"gradients that your own lines have changed ({number_of(runner.edits, 'time')})" if runner.edits else "",
        f"the other threads that trained ({_few(beside)})" if beside else "",
    ]
    left = "; ".join(filter(None, reasons))
    return f"Checked: {', '.join(parts)}." + (f" Not judged: {left}." if left else "")
