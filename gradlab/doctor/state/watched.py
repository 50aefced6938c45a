"""Records of the models that the learner's code calls and of the optimizers that it uses, with their parameters."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

from torch import Tensor, nn
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from ... import _torch
from ..events import NO_SITE, Site
from .param_index import ParamIndex

_MOST_MODELS = 500  # number of models above which the records of deleted models are dropped
_MOST_TIES = 64
_REUSE_ABOVE = 64  # number of optimizers from which on the indices of deleted optimizers are reused
_BUILT_IN = (_torch.NormBase, _torch.DropoutNd)


class WatchedModule:
    """The record of a module that the learner's code calls: its parameters, and the parts that ``eval()`` changes."""

    def __init__(self, module: nn.Module, index: ParamIndex, in_eval: WeakIdKeyDictionary) -> None:
        self.module, self._in_eval = weakref.ref(module), in_eval
        self.calls = 0
        self.refresh(module, index)

    def refresh(self, module: nn.Module, index: ParamIndex) -> None:
        """Update the record from the current parameters and submodules of ``module``."""
        self.params = index.bits(module.parameters())
        self.first_param = next(((name, index.bits([param])) for name, param in module.named_parameters()), ("", 0))
        modules = list(module.modules())
        sensitive = sorted(filter(_mode_sensitive, modules), key=lambda inner: not isinstance(inner, _BUILT_IN))
        self.sensitive = [weakref.ref(inner) for inner in sensitive]
        self.dropouts = [weakref.ref(inner) for inner in modules if any("dropout" in x for x in _used_names(inner))]
        params = list(module.parameters())
        learns = any(param.requires_grad for param in params)
        norms = [inner for inner in modules if learns and isinstance(inner, _torch.NormBase) and inner.training]
        moving = [norm for norm in norms if norm.running_mean is not None and norm.momentum != 0]
        frozen = [norm for norm in moving if not any(param.requires_grad for param in norm.parameters())]
        frozen_ids = {id(param) for norm in frozen for param in norm.parameters()}
        others = any(not param.requires_grad and id(param) not in frozen_ids for param in params)
        in_eval = {inner for part in modules[1:] if frozen and part in self._in_eval for inner in part.modules()}
        wrong = [norm for norm in frozen if norm in in_eval or not others]
        self.frozen_norms = index.bits(param for norm in wrong for param in norm.parameters())

    def dropouts_in_eval(self) -> frozenset[Site]:
        """Return the first line of ``forward()`` for each module in evaluation mode that names a dropout in it."""
        modules = [module for reference in self.dropouts if (module := reference()) is not None and not module.training]
        codes = [type(module).forward.__code__ for module in modules]
        return frozenset((code.co_filename, code.co_firstlineno) for code in codes)

    def mode_kinds(self) -> tuple[str, str]:
        """Return the class names of a part in training mode and of a part in evaluation mode; "" means no such part."""
        kinds: dict[bool, str] = {}
        for reference in self.sensitive:
            if (module := reference()) is not None:
                kinds.setdefault(module.training, type(module).__name__)
        return kinds.get(True, ""), kinds.get(False, "")


@dataclass
class UncopiedLoad:
    """Calls to ``load_state_dict()`` on one line that restore nothing, because the state was not a copy."""

    kind: str
    dict_site: Site
    """The line that called ``state_dict()``."""
    times: int = 0
    steps: int = 0
    """Number of optimizer steps between ``state_dict()`` and the last load."""


@dataclass(eq=False)
class Tie:
    """Two module attributes that have held the same parameter (tied weights), and the parameters that they hold now."""

    owners: tuple[tuple[weakref.ref[nn.Module], str], ...]
    site: Site = NO_SITE
    """The line that last assigned another parameter to one of the attributes; NO_SITE if there is none."""
    params: tuple[int, ...] = ()
    """The bits of the attributes' current parameters if they are two of the same shape; empty otherwise."""

    def refresh(self, index: ParamIndex) -> None:
        """Update ``params`` if one of the two attributes has been assigned again."""
        now = [getattr(reference(), name, None) for reference, name in self.owners] if self.site[1] else []
        params = [param for param in now if isinstance(param, Tensor)]
        if len(params) == len({id(param) for param in params}) == 2 and params[0].shape == params[1].shape:
            self.params = index.bit(params[0]), index.bit(params[1])
        elif params:
            self.params = ()


class ModuleIndex:
    """The records of the modules that the learner's code has called, and of tied and registered parameters."""

    def __init__(self, index: ParamIndex) -> None:
        self._index = index
        self._models: dict[int, WatchedModule] = {}
        self.order: dict[int, int] = {}
        """Index of a parameter -> its distance from a loss in the graph, in nodes."""
        self.uncopied: dict[Site, UncopiedLoad] = {}
        """Line that loads an object's own state into the object -> the record of these loads."""
        self.in_eval: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """Modules whose eval() was called directly, without a call to train() since."""
        self._owners: WeakIdKeyDictionary = WeakIdKeyDictionary()  # parameter -> first module and attribute to hold it
        self.ties: dict[tuple[int, str], Tie] = {}
        """Id of a module and name of its attribute -> the Tie that the attribute belongs to."""
        self._registered: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """Parameter -> the number of optimizers when it was registered, and the line that registered it."""

    def see(self, module: nn.Module) -> WatchedModule:
        """Count a call to ``module``, and return its record; some calls refresh it, because parts can be replaced."""
        model = self._models.get(id(module))
        if model is None or model.module() is not module:
            if len(self._models) >= _MOST_MODELS:
                self._models = {key: model for key, model in self._models.items() if model.module() is not None}
            model = self._models[id(module)] = WatchedModule(module, self._index, self.in_eval)
        model.calls += 1
        if model.calls <= 4 or model.calls & (model.calls - 1) == 0 or model.calls % 256 == 0:
            model.refresh(module, self._index)
            for tie in self.ties.values():
                tie.refresh(self._index)
        return model

    def first_param(self, key: int) -> tuple[str, int]:
        """Return the name and bit of the first parameter of the model with this id, or ("", 0) if there is none."""
        model = self._models.get(key)
        return model.first_param if model is not None else ("", 0)

    def recorded(self) -> list[WatchedModule]:
        """Return the records of all models, as of their last refresh."""
        return list(self._models.values())

    def all(self) -> list[WatchedModule]:
        """Refresh the records of the models that still exist, and return the records of all models."""
        for model in self._models.values():
            if (module := model.module()) is not None:
                model.refresh(module, self._index)
        return list(self._models.values())

    def register(self, param: Tensor, site: Site, optimizers: int, *, again: bool) -> None:
        """Record ``site``, the line that put a parameter into a module, and the number of optimizers at that time.

        With ``again``, which means that the parameter came inside a submodule, replace an existing record.
        """
        if again or param not in self._registered:
            self._registered[param] = optimizers, site

    def put(self, module: nn.Module, name: str, param: Tensor, site: Site) -> None:
        """Record the assignment of a parameter to a module's attribute, which may create or break a Tie."""
        first = self._owners.setdefault(param, (weakref.ref(module), name))
        if (tie := self.ties.get((id(module), name))) is not None:
            tie.site = site
        elif (owner := first[0]()) not in (None, module) and len(self.ties) < _MOST_TIES:
            tie = Tie((first, (weakref.ref(module), name)))
            self.ties[id(owner), first[1]] = self.ties[id(module), name] = tie

    def registered_after(self, params: int, optimizer: int) -> Site | None:
        """Return a line that registered one of ``params`` after the creation of ``optimizer`` (its index), or None."""
        registered = [self._registered[param] for _, param in self._index.alive(params) if param in self._registered]
        return next((site for optimizers, site in registered if optimizers > optimizer), None)

    def note_depths(self, leaves: list[tuple[Tensor, int]]) -> None:
        """Record the distance of each parameter in ``leaves`` from a loss, in nodes of the graph."""
        for leaf, distance in leaves:
            if bit := self._index.known_bits([leaf]):
                self.order[bit.bit_length() - 1] = distance


def _mode_sensitive(module: nn.Module) -> bool:
    if isinstance(module, _torch.NormBase):
        return module.running_mean is not None
    if isinstance(module, _torch.DropoutNd):
        return module.p > 0
    if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
        return module.dropout > 0
    return "training" in _used_names(module)


def _used_names(module: nn.Module) -> tuple[str, ...]:
    """Return the globals and attributes that a module's ``forward()`` uses, or () for a class of PyTorch."""
    forward = None if type(module).__module__.startswith("torch.") else type(module).forward
    return getattr(getattr(forward, "__code__", None), "co_names", ())


@dataclass(eq=False, slots=True)
class WatchedOptimizer:
    """The record of an optimizer: its index, its parameters, and values of its weights for later checks."""

    number: int
    params: int = 0
    named: int = 0
    """Parameters of the optimizer when their names were last searched for."""
    count: int = -1
    """Number of parameters of the optimizer."""
    written: int = -1
    """The sum of some weights' version counters after the last step; -1 before the first."""
    parent: WatchedOptimizer | None = None
    """The previous optimizer that the same line created over the same weights; None from the first step on."""
    predecessors: int = 0
    """Number of optimizers before this one, each of which stepped and left its weights to the next."""
    has_memory: bool = False
    """True if the optimizer's state has averages or momentum."""
    frozen_checks: int = 0
    """Number of steps; at every eighth, weights that have a gradient but require none are searched for."""
    frozen: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    """Some weights that have a gradient but require none, each with some of its values before the newest step."""
    values: list[Tensor] | None = None
    """Values of some weights after the newest step; None for a line's first optimizer, or if they cannot be read."""


class OptimizerIndex:
    """All watched optimizers, each with an index."""

    def __init__(self, index: ParamIndex) -> None:
        self._index = index
        self._last = self._count = 0
        self._watched: WeakIdKeyDictionary = WeakIdKeyDictionary()  # optimizer -> WatchedOptimizer

    def __len__(self) -> int:
        return self._count

    def numbers(self) -> dict[int, int]:
        """Return a dict from the id of each live optimizer to its index."""
        return {id(optimizer): watched.number for optimizer, watched in self._watched.items()}

    def find(self, optimizer: Optimizer) -> WatchedOptimizer | None:
        """Return the record of an optimizer with its current parameters, or None if there is no record yet."""
        watched: WatchedOptimizer | None = self._watched.get(optimizer)
        if watched is None:
            return None
        groups = optimizer.param_groups
        count = len(groups[0]["params"]) if len(groups) == 1 else sum([len(group["params"]) for group in groups])
        if count != watched.count:
            watched.count, watched.params = count, self._index.bits(p for group in groups for p in group["params"])
        return watched

    def add(self, optimizer: Optimizer) -> WatchedOptimizer:
        """Watch a new optimizer, and return its record."""
        count, taken = self._count, {watched.number for watched in self._watched.values()}
        numbers = [(self._last + offset) % count for offset in range(1, count + 1)] if count >= _REUSE_ABOVE else []
        self._last = next((number for number in numbers if number not in taken), count)
        self._count = max(count, self._last + 1)
        self._watched[optimizer] = watched = WatchedOptimizer(self._last)
        self.find(optimizer)  # sets the parameters of ``watched``
        return watched

    def stepping_instead(self, idle: WatchedOptimizer) -> int:
        """Return the index of an optimizer that steps parameters of ``idle`` with an unchanged learning rate, or -1.

        An optimizer does not count if the learner copies a schedule's rates to it, which changes its learning rate.
        """
        for optimizer, watched in self._watched.items():
            rates = [optimizer.defaults.get("lr"), *(group.get("lr") for group in optimizer.param_groups)]
            if watched.written >= 0 and watched.params & idle.params and all(rate == rates[0] for rate in rates):
                return int(watched.number)
        return -1
