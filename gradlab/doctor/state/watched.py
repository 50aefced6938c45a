"""The models that the learner's code calls, and the optimizers, each with the parameters that it holds."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

from torch import Tensor, nn
from torch.optim.optimizer import Optimizer
from torch.utils.weak import WeakIdKeyDictionary

from ... import _torch
from ..events import NO_SITE, Site
from .param_index import ParamIndex

_MOST_MODELS = 500  # models, some of them long gone
_MOST_TIES = 64


class WatchedModule:
    """A module that is called from outside of any other."""

    def __init__(self, module: nn.Module, index: ParamIndex, rested: WeakIdKeyDictionary) -> None:
        self.module, self._rested = weakref.ref(module), rested
        self.calls = 0
        self.refresh(module, index)

    def refresh(self, module: nn.Module, index: ParamIndex) -> None:
        """See its parameters and modules as they are now."""
        self.params = index.bits(module.parameters())
        self.first_param = next(((name, index.bits([one])) for name, one in module.named_parameters()), ("", 0))
        modules = list(module.modules())
        sensitive = sorted(filter(_mode_sensitive, modules), key=lambda one: not isinstance(one, _PLAIN))
        self.sensitive = [weakref.ref(one) for one in sensitive]
        self.dropouts = [weakref.ref(one) for one in modules if any("dropout" in name for name in _own_names(one))]
        params = list(module.parameters())
        learns = any(param.requires_grad for param in params)
        norms = [one for one in modules if learns and isinstance(one, _torch.NormBase) and one.training]
        moving = [one for one in norms if one.running_mean is not None and one.momentum != 0]
        frozen = [one for one in moving if not any(param.requires_grad for param in one.parameters())]
        of_norms = {id(param) for one in frozen for param in one.parameters()}
        others = any(not param.requires_grad and id(param) not in of_norms for param in params)
        rested = {inner for one in modules[1:] if frozen and one in self._rested for inner in one.modules()}
        wrong = [one for one in frozen if one in rested or not others]
        self.frozen_norms = index.bits(param for one in wrong for param in one.parameters())

    def dropouts_in_eval(self) -> frozenset[Site]:
        """Return where the forward() begins of each module in evaluation mode that mentions a dropout."""
        modules = [one for reference in self.dropouts if (one := reference()) is not None and not one.training]
        codes = [type(one).forward.__code__ for one in modules]
        return frozenset((code.co_filename, code.co_firstlineno) for code in codes)

    def mode_kinds(self) -> tuple[str, str]:
        """Return the kind of a module that is in training, and of one that is in evaluation; "" for none."""
        kinds: dict[bool, str] = {}
        for reference in self.sensitive:
            if (module := reference()) is not None:
                kinds.setdefault(module.training, type(module).__name__)
        return kinds.get(True, ""), kinds.get(False, "")


@dataclass
class UncopiedLoad:
    """A ``load_state_dict()`` of the object's own tensors, which were written to since the dictionary was made."""

    kind: str
    made: Site
    """The line that made the dictionary."""
    times: int = 0
    steps: int = 0
    """How many steps of optimizers there were since."""


@dataclass(eq=False)
class Tie:
    """A parameter that two places of a model have shared."""

    places: tuple[tuple[weakref.ref[nn.Module], str], ...]
    site: Site = NO_SITE
    """The line that put another one into one of the places."""
    params: tuple[int, ...] = ()
    """The bits of the parameters that are there now, if they are two of one shape."""

    def look(self, index: ParamIndex) -> None:
        """See whether there are two parameters now."""
        now = [getattr(reference(), name, None) for reference, name in self.places] if self.site[1] else []
        params = [one for one in now if isinstance(one, Tensor)]
        if len(params) == len({id(one) for one in params}) == 2 and params[0].shape == params[1].shape:
            self.params = index.bit(params[0]), index.bit(params[1])
        elif params:
            self.params = ()


class ModuleIndex:
    """All models that were called, by identity."""

    def __init__(self, index: ParamIndex) -> None:
        self._index = index
        self._models: dict[int, WatchedModule] = {}
        self.order: dict[int, int] = {}
        """Number of a parameter -> nodes of the graph between the parameter and a loss."""
        self.uncopied: dict[Site, UncopiedLoad] = {}
        """Lines that load a state into itself."""
        self.rested: WeakIdKeyDictionary = WeakIdKeyDictionary()
        """Modules whose own eval() was called, and no train() of their own since."""
        self._places: WeakIdKeyDictionary = WeakIdKeyDictionary()  # parameter -> the first module with it, its name
        self.ties: dict[tuple[int, str], Tie] = {}
        """A module's id and a name in it -> the tie of the parameter that was put there."""
        self._registered: WeakIdKeyDictionary = WeakIdKeyDictionary()  # parameter -> see register()

    def see(self, module: nn.Module) -> WatchedModule:
        """Return the model of a module, looked at again now and then: parts can be exchanged."""
        model = self._models.get(id(module))
        if model is None or model.module() is not module:
            if len(self._models) >= _MOST_MODELS:
                self._models = {key: one for key, one in self._models.items() if one.module() is not None}
            model = self._models[id(module)] = WatchedModule(module, self._index, self.rested)
        model.calls += 1
        if model.calls <= 4 or model.calls & (model.calls - 1) == 0 or model.calls % 256 == 0:
            model.refresh(module, self._index)
            for tie in self.ties.values():
                tie.look(self._index)
        return model

    def first_param(self, key: int) -> tuple[str, int]:
        """Return the name that the first parameter has inside the model of an identity, and its set; "", 0 for none."""
        model = self._models.get(key)
        return model.first_param if model is not None else ("", 0)

    def known(self) -> list[WatchedModule]:
        """Return all models, as they were when they were looked at last."""
        return list(self._models.values())

    def all(self) -> list[WatchedModule]:
        """Return all models, those that are alive looked at once more."""
        for model in self._models.values():
            if (module := model.module()) is not None:
                model.refresh(module, self._index)
        return list(self._models.values())

    def register(self, param: Tensor, site: Site, optimizers: int, *, again: bool) -> None:
        """Note the line that put a parameter into a module, and how many optimizers there were.

        ``again`` is for a parameter that comes with a module.
        """
        if again or param not in self._registered:
            self._registered[param] = optimizers, site

    def put(self, module: nn.Module, name: str, param: Tensor, site: Site) -> None:
        """Note that a parameter is put into a module, perhaps into a second one, or in the place of a shared one."""
        first = self._places.setdefault(param, (weakref.ref(module), name))
        if (tie := self.ties.get((id(module), name))) is not None:
            tie.site = site
        elif (owner := first[0]()) not in (None, module) and len(self.ties) < _MOST_TIES:
            tie = Tie((first, (weakref.ref(module), name)))
            self.ties[id(owner), first[1]] = self.ties[id(module), name] = tie

    def registered_after(self, params: int, optimizer: int) -> Site | None:
        """Return the line that made one of these parameters after an optimizer was made; None if there is none."""
        known = [self._registered[one] for _, one in self._index.alive(params) if one in self._registered]
        return next((site for optimizers, site in known if optimizers > optimizer), None)

    def note_depths(self, leaves: list[tuple[Tensor, int]]) -> None:
        """Note how far from the loss the parameters are."""
        for leaf, distance in leaves:
            if bit := self._index.known_bits([leaf]):
                self.order[bit.bit_length() - 1] = distance


def _mode_sensitive(module: nn.Module) -> bool:
    """Return whether a module works otherwise in training than in evaluation."""
    if isinstance(module, _torch.NormBase):
        return module.running_mean is not None
    if isinstance(module, _torch.DropoutNd):
        return module.p > 0
    if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
        return module.dropout > 0
    return "training" in _own_names(module)


def _own_names(module: nn.Module) -> tuple[str, ...]:
    """Return the names that the forward() of a class of the learner's uses; none for a class of PyTorch's."""
    forward = None if type(module).__module__.startswith("torch.") else type(module).forward
    return getattr(getattr(forward, "__code__", None), "co_names", ())


_PLAIN = (_torch.NormBase, _torch.DropoutNd)


_MANY_OPTIMIZERS = 64  # numbers; from then on those of optimizers that are gone are given to new ones


@dataclass(eq=False, slots=True)
class WatchedOptimizer:
    """An optimizer that is watched."""

    number: int
    params: int = 0
    named: int = 0
    """Its parameters when names were looked for."""
    count: int = -1
    """The number of its parameters."""
    written: int = -1
    """How often its weights had been written to after its last step; -1 before the first."""
    parent: WatchedOptimizer | None = None
    """The one that the same line has made before over the same weights, until the first step."""
    before: int = 0
    """How many went before it, each of which has stepped and left its weights to the next."""
    lasting: bool = False
    """True if it keeps averages or momentum."""
    looks: int = 0
    """How often it was asked for weights that require no gradient."""
    frozen: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    """A few of those that have a gradient, with values before the newest step; empty if there were none."""
    values: list[Tensor] | None = None
    """Some of the weights after its newest step; only kept from the second optimizer of a line on."""


class OptimizerIndex:
    """All optimizers, by identity and by number."""

    def __init__(self, index: ParamIndex) -> None:
        self._index = index
        self._last = self._count = 0
        self._known: WeakIdKeyDictionary = WeakIdKeyDictionary()  # optimizer -> WatchedOptimizer

    def __len__(self) -> int:
        return self._count

    def numbers(self) -> dict[int, int]:
        """Return the numbers of those that are alive, by their ids."""
        return {id(optimizer): one.number for optimizer, one in self._known.items()}

    def find(self, optimizer: Optimizer) -> WatchedOptimizer | None:
        """Return an optimizer that is known, with its parameters as they are now; None for a new one."""
        one: WatchedOptimizer | None = self._known.get(optimizer)
        if one is None:
            return None
        groups = optimizer.param_groups
        count = len(groups[0]["params"]) if len(groups) == 1 else sum([len(group["params"]) for group in groups])
        if count != one.count:
            one.count, one.params = count, self._index.bits(p for group in groups for p in group["params"])
        return one

    def add(self, optimizer: Optimizer) -> WatchedOptimizer:
        """Give a new optimizer a number; when there have been many, that of one that is gone."""
        count, taken = self._count, {one.number for one in self._known.values()}
        numbers = [(self._last + offset) % count for offset in range(1, count + 1)] if count >= _MANY_OPTIMIZERS else []
        self._last = next((number for number in numbers if number not in taken), count)
        self._count = max(count, self._last + 1)
        self._known[optimizer] = WatchedOptimizer(self._last)
        one = self.find(optimizer)
        assert one is not None
        return one

    def stepping_instead(self, idle: WatchedOptimizer) -> int:
        """Return another optimizer that steps parameters of an idle one, at the rate that it was made with; -1: none.

        Who copies the rates of a schedule to the other one moves its rate.
        """
        for optimizer, one in self._known.items():
            rates = [optimizer.defaults.get("lr"), *(group.get("lr") for group in optimizer.param_groups)]
            if one.written >= 0 and one.params & idle.params and all(rate == rates[0] for rate in rates):
                return int(one.number)
        return -1
