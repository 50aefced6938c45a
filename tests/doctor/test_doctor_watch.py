"""Looking changes nothing, and leaves nothing behind, however the watch ends."""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import itertools
import os
import pickle
import sys
import traceback
import warnings
import weakref

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau, StepLR
from torch.optim.optimizer import Optimizer
from watched_loops import LOOPS, batch, build

from gradlab.doctor import watch
from gradlab.doctor.runner import RuleRunner


def kinds(*roots: type) -> set[type]:
    return set(roots).union(*(kinds(*root.__subclasses__()) for root in roots if root.__subclasses__()))


def owners() -> list[object]:
    """Return all modules and classes of PyTorch in which a name could be replaced."""
    modules = [module for name, module in sorted(sys.modules.items()) if name.split(".")[0] == "torch"]
    classes = kinds(nn.Module, Optimizer, LRScheduler, ReduceLROnPlateau, torch.amp.GradScaler)
    lasting = (kind for kind in classes if "<locals>" not in kind.__qualname__)  # but for those that a tracer makes
    return [*modules, *(kind for kind in lasting if kind.__module__.startswith("torch")), torch.Tensor]


def names() -> dict[tuple[int, str], int]:
    """Return the ids of PyTorch's functions and classes by name, and the numbers of global hooks."""
    ids = {
        (id(owner), name): id(value)
        for owner in owners()
        for name, value in list(vars(owner).items())
        if callable(value) and not name.startswith(("__path", "__compiled"))
    }
    ids[0, "hooks"] = len(sys.modules["torch.optim.optimizer"]._global_optimizer_pre_hooks)
    ids[0, "post hooks"] = len(sys.modules["torch.optim.optimizer"]._global_optimizer_post_hooks)
    ids[0, "module hooks"] = len(torch.nn.modules.module._global_forward_hooks)
    return ids


@pytest.fixture(scope="module")
def at_first() -> dict[tuple[int, str], int]:
    """All of PyTorch's names before any watch, after it has loaded its lazy modules."""
    for loop in (LOOPS["sgd"], LOOPS["compile"]):
        loop()
    for kind in vars(torch.optim).values():  # the first optimizer of a class replaces its step()
        if isinstance(kind, type) and kind is not torch.optim.Optimizer and issubclass(kind, torch.optim.Optimizer):
            kind([nn.Parameter(torch.zeros(1, 1))])
    gc.collect()  # classes that PyTorch has made for the models of other tests, as parametrize does
    return names()


@pytest.fixture
def untouched(at_first):
    """Compare all of PyTorch's names before and after."""
    yield
    after = names()
    assert {key: after.get(key) for key in at_first} == at_first


def train(updates: int = 5, model: nn.Module | None = None) -> None:
    model = build() if model is None else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(updates):
        x, y = batch()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


def same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(a.dtype == b.dtype and a.equal(b) for a, b in zip(left, right, strict=True))


@pytest.mark.parametrize("name", LOOPS)
def test_what_is_computed_is_the_same_bit_for_bit(name):
    torch.manual_seed(5)
    bare = LOOPS[name]()
    torch.manual_seed(5)
    with watch() as report:
        watched = LOOPS[name]()
    assert same(bare, watched)
    assert report.watched.startswith("Watched")
    assert "failed" not in report.watched
    assert not report.wrong or name in ("forgotten", "second order"), report.text
    torch.manual_seed(6)
    assert not same(bare, LOOPS[name]()), "these tensors would show no difference"


def test_all_is_put_back_after_an_exception(untouched):
    class Broken(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = super().forward(x)
            y.register_hook(lambda grad: 1 / 0)
            return y

    with pytest.raises(ZeroDivisionError), watch():
        train(model=Broken(4, 1))
    optimizer = torch.optim.SGD(build().parameters(), lr=0.1)
    with pytest.raises(ZeroDivisionError), watch():
        optimizer.step(lambda: 1 / 0)


def test_watches_may_end_in_any_order(untouched):
    for order in itertools.permutations(range(3)):
        watches = [watch() for _ in range(3)]
        for each in watches:
            each.__enter__()
        for index in order:
            train(1)
            watches[index].__exit__(None, None, None)
        assert all(each.watched.startswith("Watched") for each in watches)


def test_a_watch_inside_a_watch_sees_the_same(untouched):
    def wrong() -> None:
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        schedule = StepLR(optimizer, 2)
        for _ in range(9):
            nn.functional.mse_loss(model(batch()[0]), batch()[1]).backward()
            nn.utils.clip_grad_value_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()

    with watch() as alone:
        wrong()
    with watch() as outer, watch() as inner:
        wrong()
    assert alone.codes == outer.codes == inner.codes == ["missing-zero-grad"]
    assert [finding.evidence for finding in outer] == [finding.evidence for finding in alone]


def test_one_watch_watches_once_at_a_time_and_again(untouched):
    once = watch()
    with once, pytest.raises(RuntimeError, match="already watching"), once:
        pass
    for _ in range(3):
        with once as report:
            train(4)
        assert report.watched == "Watched 4 backward passes, 4 updates of optimizer (SGD)."


def test_a_patch_of_somebody_else_on_top_is_left_alone():
    original = nn.Module.__call__
    with watch():

        def theirs(module, *args, **kwargs):
            return below(module, *args, **kwargs)

        below, nn.Module.__call__ = nn.Module.__call__, theirs
    try:
        assert nn.Module.__call__ is theirs
        train()
    finally:
        nn.Module.__call__ = original


def test_a_function_that_was_kept_does_what_it_did_before():
    model = build()
    runner = RuleRunner()
    runner.start()
    zero_grad = model.zero_grad
    train(3, model)
    runner.stop()
    assert runner.log.passes.count == 3
    zero_grad()
    assert all(p.grad is None for p in model.parameters())
    assert runner.log.events == [], "it goes on listening"


def test_nothing_of_the_watch_is_in_what_is_saved(tmp_path):
    model = build()
    optimizer = torch.optim.Adam(model.parameters())
    schedule, scaler = StepLR(optimizer, 1), torch.amp.GradScaler("cpu")
    whole = (model, optimizer, schedule.state_dict(), scaler)
    bare = io.BytesIO()
    torch.save(whole, bare)
    with watch(model, optimizer):
        inside = io.BytesIO()
        torch.save(whole, inside)
        twin = copy.deepcopy(model)
        assert pickle.loads(pickle.dumps(optimizer)).state_dict()["param_groups"]
        train(3, twin)
    assert bare.getvalue() == inside.getvalue()
    assert b"gradlab" not in pickle.dumps((model, twin, optimizer))
    train(3, copy.deepcopy(twin))
    torch.save(twin, tmp_path / "model.pt")
    assert b"Sequential" in (tmp_path / "model.pt").read_bytes()
    assert b"gradlab" not in (tmp_path / "model.pt").read_bytes()


def test_a_compiled_model_is_compiled_once():
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    model = build()
    fast = torch.compile(model, backend=counter, fullgraph=True)
    train(3, fast)
    frames = counter.frame_count
    for _ in range(10):
        with watch():
            train(3, fast)
        train(1, fast)
    assert counter.frame_count <= frames + 2
    torch._dynamo.reset()
    with watch():
        again = torch.compile(build(), backend="eager", fullgraph=True)
        train(3, again)
    train(3, again)


def test_a_view_whose_grad_fn_cannot_be_read_may_be_returned():
    class Views(nn.Linear):
        def forward(self, x):
            with torch.no_grad():
                base = torch.ones(4)
                view = base[:2]
            self.loss = base.mul_(super().forward(x).sum()).sum()
            return view

    model = Views(2, 1)
    with watch() as report:
        for _ in range(3):
            view = model(torch.ones(1, 2))
            model.loss.backward()
            model.zero_grad()
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        _ = view.grad_fn
    assert "3 backward passes" in report.watched
    assert "failed" not in report.watched


def test_neither_a_watch_nor_its_report_keeps_anything_alive():
    with watch() as report:
        model = build()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = batch()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        for _ in range(4):
            nn.functional.mse_loss(model(x), y).backward()
        objects = (model, optimizer, model[0].weight, model[0].weight.grad, x)
        references = [weakref.ref(each) for each in objects]
        del model, optimizer, x, objects
        gc.collect()
        assert [each() for each in references] == [None] * 5
    assert report.watched


@pytest.mark.parametrize("what", [3, None, "model", [build()], build, nn.Linear])
def test_what_is_no_module_and_no_optimizer_is_refused(what):
    with pytest.raises(TypeError, match="must be modules and optimizers"):
        watch(what)


def test_nothing_happens_inside(untouched):
    with watch() as report:
        pass
    assert not report
    assert "Nothing was trained" in report.text
    with watch() as report, torch.no_grad():
        build()(batch()[0])
    assert "Nothing was trained" in repr(report)


def test_a_learners_traceback_shows_no_frame_of_ours():
    class Broken(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as caught, watch():
        nn.Sequential(Broken())(1)
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert not [file for file in files if "doctor/" in file and not file.startswith(os.path.dirname(__file__))]
    assert files[-1] == __file__


def test_a_warning_about_a_scheduler_is_about_the_learners_line():
    def early() -> None:
        StepLR(torch.optim.SGD(build().parameters(), lr=0.1), 1).step()

    with warnings.catch_warnings(record=True) as bare:
        warnings.simplefilter("always")
        early()
    with warnings.catch_warnings(record=True) as watched, watch():
        warnings.simplefilter("always")
        early()
    assert [(each.filename, each.lineno) for each in watched] == [(each.filename, each.lineno) for each in bare]
    assert watched[0].filename == __file__


def test_a_failure_of_the_doctor_never_reaches_the_loop(monkeypatch, untouched):
    from gradlab.doctor.state.param_index import ParamIndex

    def fails(*args, **kwargs):
        raise RuntimeError("not the learner's fault")

    monkeypatch.setattr(ParamIndex, "changes", fails)
    torch.manual_seed(5)
    bare = LOOPS["amp"]()
    torch.manual_seed(5)
    with watch() as report:
        watched = LOOPS["amp"]()
    assert same(bare, watched)
    assert "The doctor failed and stopped watching" in report.watched


@pytest.mark.parametrize("device", ["meta", "inference", "fake", "lazy", "sparse", "double"])
def test_tensors_of_all_kinds(device):
    from torch._subclasses.fake_tensor import FakeTensorMode

    options = {"meta": {"device": "meta"}, "double": {"dtype": torch.float64}}.get(device, {})
    with watch() as report, FakeTensorMode() if device == "fake" else contextlib.nullcontext():
        with torch.inference_mode(device == "inference"):
            build()(batch()[0])
        x = torch.ones(6, 4, **options)
        model = nn.LazyLinear(1) if device == "lazy" else nn.Linear(4, 1, **options)
        kind = torch.optim.SGD
        if device == "sparse":
            x, model, kind = torch.arange(6), nn.Embedding(9, 1, sparse=True), torch.optim.SparseAdam
        model(x)
        optimizer = kind(model.parameters(), lr=0.1)
        for _ in range(30):
            optimizer.zero_grad(set_to_none=device == "sparse")
            model(x).sum().backward()
            optimizer.step()
    assert report.findings == []
    assert "failed" not in report.watched


def test_a_pass_may_begin_at_an_edge_of_the_graph():
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch() as report:
        for _ in range(12):
            optimizer.zero_grad()
            edge = torch.autograd.graph.get_gradient_edge(model(batch()[0]).mean())
            torch.autograd.backward([edge], [torch.ones(())])
            optimizer.step()
    assert report.findings == []
    assert report.judged
    assert report.watched.startswith("Watched 12 backward passes, 12 updates of ")


class Own(torch.Tensor): ...


def test_an_edited_gradient_of_a_subclass_is_no_failure():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watch() as report:
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            for param in model.parameters():
                assert param.grad is not None
                param.grad = 0.5 * param.grad.as_subclass(Own)  # type: ignore[no-untyped-call]
            optimizer.step()
    assert report.watched.startswith("Watched 4 backward passes, 4 updates")
    assert not report.findings


def test_an_integer_parameter_moved_by_hand_is_no_failure():
    weight, count = nn.Parameter(torch.ones(3)), nn.Parameter(torch.tensor([0]), requires_grad=False)
    module = nn.Module()
    module.weight, module.count = weight, count
    with watch(module) as report:
        for _ in range(6):
            weight.grad = None
            (weight * torch.randn(3)).sum().backward()
            with torch.no_grad():
                weight -= 0.1 * weight.grad
                count += 1
    assert "failed" not in report.watched


def test_a_watch_ended_while_it_sums_up_has_judged_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(self: object, *, normal: bool) -> None:
        raise SystemExit(143)  # as SIGTERM does in a process of a pool

    monkeypatch.setattr("gradlab.doctor.runner.RuleRunner.end", end)
    report = watch()
    with pytest.raises(SystemExit), report:
        pass
    assert not report.judged
