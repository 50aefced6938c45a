"""The oldest supported version of PyTorch, and the private names of PyTorch that gradlab relies on.

Each key of ``PRIVATE_NAMES`` is an attribute of this module: ``_torch.sequence_number``, for example, is the object at
that entry's path. Paths are resolved at first use, so importing this module does not import torch. A path that begins
with ``Node`` leads to an attribute of an autograd node, and one that begins with ``GradScaler`` to an attribute of a
scaler. ``delay_dynamo()`` relies on further names.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib import import_module, util
from types import FunctionType
from typing import Any

FLOOR = (2, 11)  # the oldest supported version of PyTorch, as (major, minor); pyproject.toml must require it, too


class UnsupportedTorchError(ImportError):
    """Raised if PyTorch is missing or too old."""


def complaint() -> str | None:
    """Return an error message if PyTorch is missing or too old, or None if gradlab works with this version."""
    oldest = ".".join(map(str, FLOOR))
    version = _installed()
    if version is None:
        return f"gradlab needs PyTorch {oldest} or newer, and none is installed. See https://pytorch.org to install it."
    numbers = re.match(r"(\d+)\.(\d+)", version)  # a development version such as 2.11.0a0+git counts as 2.11
    if numbers is None or (int(numbers[1]), int(numbers[2])) >= FLOOR:
        return None
    return (
        f"gradlab needs PyTorch {oldest} or newer, and this is PyTorch {version}. "
        f'Install a newer version with: {sys.executable or "python"} -m pip install --upgrade "torch>={oldest}". '
        "Then restart Python (in a notebook, the kernel)."
    )


def require_torch() -> None:
    """Raise UnsupportedTorchError, an ImportError, if PyTorch is missing or too old."""
    if wrong := complaint():
        raise UnsupportedTorchError(wrong)


def _installed() -> str | None:
    """Return PyTorch's version, "unknown" if PyTorch is installed without metadata, or None if it is not installed."""
    running = getattr(sys.modules.get("torch"), "__version__", None)
    if running is not None:
        return str(running)
    from importlib import metadata  # imported here, because this takes longer (20 ms) than all of ``import gradlab``

    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:  # a custom build may lack the package's metadata
        return "unknown" if util.find_spec("torch") is not None else None


ACCUMULATE_GRAD = "torch::autograd::AccumulateGrad"  # ``name()`` of the node that accumulates a leaf's gradient


@dataclass(frozen=True)
class Name:
    """A private name of PyTorch, and the consequence if the installed version does not have it."""

    path: str
    used_by: str  # the folders of gradlab whose features need the name, separated by spaces
    lost_feature: str = ""  # the consequence of a missing name for the user, or "" if there is none
    fallback: Callable[[], Any] | None = None  # returns a substitute; if None, a missing name raises AttributeError


def _slow_norms(tensors: list[Any], order: float = 2) -> list[Any]:
    import torch

    return [torch.linalg.vector_norm(tensor, order) for tensor in tensors]


_LEDGER = "Ledger, the memory panel and forecasts do not work"
_FAKE = "Ledger and forecasts do not work"
_CUDA = "forecasts for a CUDA card do not work"
_MODULES, _OPTIMIZERS = "torch.nn.modules.module._global_", "torch.optim.optimizer._global_optimizer_"
_NO_MODULES = "memory is not counted by module, and a compiled model is not refused"
_NEW = "parameters that are created in the block are not recognised at once"
_STEPS = "optimizer steps are not observed"
_WORDS = "a model whose shapes depend on its data is refused with PyTorch's own error message"
_HOOKS = "hooks that your loop or answer registers on all modules or optimizers stay registered after it ends"
_UNSEEN = "backward passes are not observed, so no rule can find anything"
_GIVEN = "backward(gradient=...) is treated like a plain backward()"
_REDUCED = "the rule loss-not-divided is off: a mean cannot be distinguished from a sum"
_FAILED = "an fp16 loop that failed in the middle of an update must be reset"
_CLIP, _DISPATCH = "torch.nn.utils.clip_grad.", "torch.utils._python_dispatch."
_FAKES = "torch._subclasses.fake_tensor."
_CLIPPED = "the rules for {} are off, and gradients that it clips count as changed by hand"
_UNKNOWN = "the rules for training and evaluation mode do not recognise {}"
_PASSES = "backward passes are not distinguished from each other, and work on autograd's threads is not recognised"
_NO_MODULE = "memory in backward is not counted by module"
_CARRIED = "a state carried from one update to the next is reported like other errors of backward(), and " + _NO_MODULE
_UNTRACED = "the terms of a loss, and the operation that cuts a graph, are not found"
_MODES = "your own dispatch modes also receive gradlab's operations"
_NESTED = "the bytes of torch.nested tensors are not counted"
_KEPT = "the tensors that checkpointing keeps are counted as other"
_FOUND = "the tensors that a graph saved before a Ledger began are counted as batches"
_SLOW = "inspecting a gradient always takes longer"
_COMPILED = "a Ledger does not refuse a model compiled with model.compile(), and counts only part of its memory"
_PASSED = "while your own threads run, operations that are passed torch.default_generator draw from it, even in a run"

PRIVATE_NAMES: dict[str, Name] = {
    "engine_run_backward": Name("torch.autograd._engine_run_backward", "doctor", _UNSEEN),
    "make_grads": Name("torch.autograd._make_grads", "doctor", _GIVEN),
    "clip_grads_with_norm": Name(f"{_CLIP}_clip_grads_with_norm_", "doctor", _CLIPPED.format("clip_grad_norm_")),
    "group_tensors": Name(f"{_CLIP}_group_tensors_by_device_and_dtype", "doctor", _CLIPPED.format("clip_grad_value_")),
    "update_lr": Name("torch.optim.lr_scheduler.LRScheduler._update_lr", "doctor"),
    "current_graph_task": Name(
        "torch._C._current_graph_task_id", "doctor gradients memory", _PASSES, lambda: lambda: -1
    ),
    "sequence_number": Name("torch._C._autograd._get_sequence_nr", "doctor memory", _CARRIED, lambda: lambda: 0),
    "node_sequence_number": Name("Node._sequence_nr", "doctor memory", _CARRIED),
    "node_saved_reduction": Name("Node._saved_reduction", "doctor", _REDUCED),
    "function_stack_size": Name("torch._C._len_torch_function_stack", "doctor", _UNTRACED),
    "push_function_mode": Name("torch._C._push_on_torch_function_stack", "doctor", _UNTRACED),
    "pop_function_mode": Name("torch._C._pop_torch_function_stack", "doctor", _UNTRACED),
    "disable_current_modes": Name(
        f"{_DISPATCH}_disable_current_modes", "doctor gradients loop", _MODES, lambda: nullcontext
    ),
    "foreach_norm": Name("torch._foreach_norm", "doctor gradients loop", "", lambda: _slow_norms),
    "dispatch_stack_size": Name("torch._C._len_torch_dispatch_stack", "gradients loop", _SLOW, lambda: lambda: 1),
    "dispatch_mode_stack": Name(f"{_DISPATCH}_get_current_dispatch_mode_stack", "memory", _LEDGER),
    "TorchDispatchMode": Name(f"{_DISPATCH}TorchDispatchMode", "memory course", _LEDGER),
    "is_traceable_wrapper_subclass": Name(
        f"{_DISPATCH}is_traceable_wrapper_subclass", "memory", _NESTED, lambda: lambda tensor: False
    ),
    "current_autograd_node": Name("torch._C._current_autograd_node", "memory", _NO_MODULE, lambda: lambda: None),
    "has_storage": Name("torch._C._has_storage", "memory", _LEDGER),
    "storage_use_count": Name("torch._C._storage_Use_Count", "memory", _KEPT, lambda: lambda key: 0),
    "saved_tensors_hooks_disable": Name("torch._C._autograd._saved_tensors_hooks_disable", "memory", _LEDGER),
    "saved_tensors_hooks_enable": Name("torch._C._autograd._saved_tensors_hooks_enable", "memory", _LEDGER),
    "top_saved_tensors_hooks": Name("torch._C._autograd._top_saved_tensors_default_hooks", "memory", _LEDGER),
    "push_saved_tensors_hooks": Name("torch._C._autograd._push_saved_tensors_default_hooks", "memory", _LEDGER),
    "pop_saved_tensors_hooks": Name("torch._C._autograd._pop_saved_tensors_default_hooks", "memory", _LEDGER),
    "saved_unpack_hook": Name("torch._C._autograd.SavedTensor.unpack_hook", "memory", _FOUND, lambda: None),
    "forward_pre_hooks": Name(f"{_MODULES}forward_pre_hooks", "memory", _NO_MODULES),
    "forward_hooks": Name(f"{_MODULES}forward_hooks", "memory", _NO_MODULES),
    "forward_hooks_always_called": Name(f"{_MODULES}forward_hooks_always_called", "memory", _NO_MODULES),
    "parameter_registration_hooks": Name(f"{_MODULES}parameter_registration_hooks", "memory doctor", _NEW),
    "buffer_registration_hooks": Name(f"{_MODULES}buffer_registration_hooks", "memory", _NEW),
    "module_registration_hooks": Name(f"{_MODULES}module_registration_hooks", "doctor", _NEW),
    "optimizer_pre_hooks": Name(f"{_OPTIMIZERS}pre_hooks", "memory doctor", _STEPS),
    "optimizer_post_hooks": Name(f"{_OPTIMIZERS}post_hooks", "memory doctor", _STEPS),
    "compiled_call_impl": Name("torch.nn.Module._compiled_call_impl", "memory", _COMPILED),
    "generator_address": Name("torch.Generator._cdata", "loop", _PASSED, lambda: property(id)),
    "FakeTensor": Name(f"{_FAKES}FakeTensor", "memory forecasting", _FAKE),
    "FakeTensorMode": Name(f"{_FAKES}FakeTensorMode", "memory forecasting", _FAKE),
    "DataDependentOutputException": Name(f"{_FAKES}DataDependentOutputException", "forecasting", _WORDS, lambda: ()),
    "DynamicOutputShapeException": Name(f"{_FAKES}DynamicOutputShapeException", "forecasting", _WORDS, lambda: ()),
    "DispatchKey": Name("torch._C.DispatchKey", "forecasting", _CUDA),
    "DispatchKeySet": Name("torch._C.DispatchKeySet", "forecasting", _CUDA),
    "ExcludeDispatchKeyGuard": Name("torch._C._ExcludeDispatchKeyGuard", "forecasting", _CUDA),
    "IncludeDispatchKeyGuard": Name("torch._C._IncludeDispatchKeyGuard", "forecasting", _CUDA),
    "SetExcludeDispatchKeyGuard": Name("torch._C._SetExcludeDispatchKeyGuard", "forecasting", _CUDA),
    "key_included": Name("torch._C._dispatch_tls_is_dispatch_key_included", "forecasting", _CUDA),
    "keyset_full_after": Name("torch._C._dispatch_keyset_full_after", "forecasting", _CUDA),
    "spare_key": Name("torch._C.DispatchKey.AutocastIPU", "forecasting", _CUDA),
    "spare_autograd_key": Name("torch._C.DispatchKey.AutogradIPU", "forecasting", _CUDA),
    "registrations_for_key": Name("torch._C._dispatch_get_registrations_for_dispatch_key", "forecasting", _CUDA),
    "per_optimizer_states": Name("GradScaler._per_optimizer_states", "loop", _FAILED),
    "module_hooks": Name("torch.nn.modules.module._global_forward_hooks", "loop course", _HOOKS),
    "optimizer_hooks": Name("torch.optim.optimizer._global_optimizer_pre_hooks", "loop course", _HOOKS),
    "is_full_backward_hook": Name("torch.nn.modules.module._global_is_full_backward_hook", "loop course", _HOOKS),
    "NormBase": Name("torch.nn.modules.batchnorm._NormBase", "doctor", _UNKNOWN.format("BatchNorm"), lambda: ()),
    "DropoutNd": Name("torch.nn.modules.dropout._DropoutNd", "doctor", _UNKNOWN.format("Dropout"), lambda: ()),
}


def missing(used_by: str | None = None) -> list[str]:
    """Return a message for each missing name that a feature needs; ``used_by`` selects the features of one folder."""
    return [
        f"{name.lost_feature} (this PyTorch has no {name.path})"
        for name in PRIVATE_NAMES.values()
        if name.lost_feature and used_by in (None, *name.used_by.split()) and not _has(name.path)
    ]


def locate(name: str) -> tuple[Any, str]:
    """Return the owner and attribute name of an entry of ``PRIVATE_NAMES``, or (None, "") if PyTorch lacks the name."""
    path = PRIVATE_NAMES[name].path
    return (_resolve(path.rpartition(".")[0]), path.rpartition(".")[2]) if _has(path) else (None, "")


def __getattr__(name: str) -> Any:
    if name not in PRIVATE_NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    entry = PRIVATE_NAMES[name]
    try:
        value = _resolve(entry.path)
    except AttributeError:
        if entry.fallback is None:
            raise
        value = entry.fallback()
    globals()[name] = value
    return value


def _has(path: str) -> bool:
    try:
        _resolve(path)
    except AttributeError:
        return False
    return True


def _resolve(path: str) -> Any:
    first, *rest = path.split(".")
    value = {"Node": _node, "GradScaler": _scaler}.get(first, lambda: import_module(first))()
    so_far = first
    for part in rest:
        so_far += f".{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = import_module(so_far)  # a submodule that is not imported yet
            except ImportError:
                raise AttributeError(f"this PyTorch has no {path}") from None
    return value


def _node() -> Any:
    """Return the autograd node of an ``mse_loss``; this node saves the argument ``reduction``."""
    import torch

    with __getattr__("disable_current_modes")(), torch.inference_mode(False), torch.enable_grad():
        return torch.nn.functional.mse_loss(torch.zeros(1, requires_grad=True), torch.zeros(1)).grad_fn


def _scaler() -> Any:
    """Return an instance of GradScaler, because its constructor creates attributes that the class lacks."""
    import torch

    return torch.amp.GradScaler("cpu")


def outside_dispatch_modes() -> AbstractContextManager[Any]:
    """Return a context in which no dispatch mode, such as that of a Ledger, sees the operations."""
    this: Any = sys.modules[__name__]  # attribute access calls ``__getattr__``, which resolves each name once
    return this.disable_current_modes() if this.dispatch_stack_size() else nullcontext()


def is_compiled(module: Any) -> bool:
    """Return whether ``module`` or one of its submodules was compiled."""
    return any(hasattr(each, "_orig_mod") or each._compiled_call_impl is not None for each in module.modules())


_DYNAMO = "torch._dynamo"
_DISABLED = "__dynamo_disable"  # the attribute in which ``torch._disable_dynamo`` stores a function's replacement
_STEP_NAMES = {
    _DYNAMO, "cast", "Optimizer", "is_grad_enabled", "set_grad_enabled", "defaults", "_dynamo", "graph_break"
}  # fmt: skip
"""The names in the code of PyTorch's wrapper around an optimizer's ``step()``; other wrappers are not patched."""
_INSTEAD = {_DYNAMO: "torch", "_dynamo": "compiler", "graph_break": "is_compiling"}
"""Renames that turn ``torch._dynamo.graph_break()`` into ``torch.compiler.is_compiling()``, which is also a no-op."""


def forward_hooks_of(module: Any) -> dict[int, Any]:
    """Return a module's forward hooks and forward pre-hooks by id, or {} if PyTorch stores them under other names."""
    return {**vars(module).get("_forward_hooks", {}), **vars(module).get("_forward_pre_hooks", {})}


def compiled_anything() -> bool:
    """Return whether ``torch.compile`` was used in this process, according to dynamo's cached backends."""
    dynamo = sys.modules.get("torch._dynamo.eval_frame")
    backends = getattr(dynamo, "cached_backends", {})  # dynamo's backend is None for functions that are not compiled
    return any(backend is not None for backend in backends.values())


def delay_dynamo() -> None:
    """Patch PyTorch's optimizers to work without ``torch._dynamo`` until something else imports it.

    Unpatched, the first optimizer imports dynamo, which takes 1.5 seconds and 70 MiB, only to exclude some functions
    from compilation. Before dynamo is imported nothing can be compiled, so the exclusion has no effect. The patches are
    undone just before ``torch.compile`` or anything else imports dynamo. A wrapper around ``step()`` is not patched if
    its code uses a name outside ``_STEP_NAMES``.
    """
    if _DYNAMO in sys.modules or any(isinstance(finder, _BeforeDynamo) for finder in sys.meta_path):
        return
    finder = _BeforeDynamo()
    sys.meta_path.insert(0, finder)
    for function in _functions_of_optimizers():
        wrapped, code = getattr(function, "__wrapped__", None), function.__code__
        if _DISABLED in code.co_consts:
            if isinstance(wrapped, FunctionType) and not hasattr(wrapped, _DISABLED):
                finder.undo.append(partial(delattr, wrapped, _DISABLED))
                setattr(wrapped, _DISABLED, wrapped)
        elif _DYNAMO in code.co_names and _STEP_NAMES.issuperset(code.co_names):
            finder.undo.append(partial(setattr, function, "__code__", code))
            function.__code__ = code.replace(co_names=tuple(_INSTEAD.get(name, name) for name in code.co_names))


def _functions_of_optimizers() -> Iterator[FunctionType]:
    """Yield the methods of PyTorch's optimizers, and the functions that these methods wrap."""
    import torch

    for kind in vars(torch.optim).values():
        if isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer):
            for function in vars(kind).values():
                while isinstance(function, FunctionType):
                    yield function
                    function = getattr(function, "__wrapped__", None)


class _BeforeDynamo:
    """A meta path finder that undoes ``delay_dynamo`` just before ``torch._dynamo`` is imported."""

    def __init__(self) -> None:
        self.undo: list[Callable[[], Any]] = []

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """For ``torch._dynamo``, undo the patches and return the other finders' spec; otherwise return None."""
        if name != _DYNAMO or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        while self.undo:
            self.undo.pop()()
        # Search again: the running search would skip the next finder, because this one has left ``sys.meta_path``.
        return util.find_spec(name)
