"""The models that the learner's code calls: their parameters, and the modules in them that have a mode."""

from __future__ import annotations

import weakref

from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from ... import _torch
from ..events import Site, bit_positions
from .param_index import ParamIndex

_MOST = 500  # models, some of them long gone


class WatchedModule:
    """A module that is called from outside of any other."""

    def __init__(self, module: nn.Module, index: ParamIndex) -> None:
        self.module = weakref.ref(module)
        self.calls = 0
        self.refresh(module, index)

    def refresh(self, module: nn.Module, index: ParamIndex) -> None:
        """See its parameters and modules as they are now."""
        self.params = index.bits(module.parameters())
        self.first_param = next(((name, index.bits([one])) for name, one in module.named_parameters()), ("", 0))
        self.sensitive = [weakref.ref(one) for one in module.modules() if _mode_sensitive(one)]

    def mode_kinds(self) -> tuple[str, str]:
        """Return the kind of a module that is in training, and of one that is in evaluation; "" for none."""
        kinds: dict[bool, str] = {}
        for reference in self.sensitive:
            if (module := reference()) is not None:
                kinds.setdefault(module.training, type(module).__name__)
        return kinds.get(True, ""), kinds.get(False, "")


class ModuleIndex:
    """All models that were called, by identity."""

    def __init__(self, index: ParamIndex) -> None:
        self._index = index
        self._models: dict[int, WatchedModule] = {}
        self.order: dict[int, int] = {}
        """Number of a parameter -> nodes of the graph between the parameter and a loss."""
        self._registered: WeakIdKeyDictionary = WeakIdKeyDictionary()  # parameter -> see register()

    def see(self, module: nn.Module) -> WatchedModule:
        """Return the model of a module, looked at again now and then: parts can be exchanged."""
        model = self._models.get(id(module))
        if model is None or model.module() is not module:
            if len(self._models) >= _MOST:
                self._models = {key: one for key, one in self._models.items() if one.module() is not None}
            model = self._models[id(module)] = WatchedModule(module, self._index)
        model.calls += 1
        if model.calls <= 4 or model.calls & (model.calls - 1) == 0 or model.calls % 256 == 0:
            model.refresh(module, self._index)
        return model

    def first_param(self, key: int) -> tuple[str, int]:
        """Return the name that the first parameter has inside the model of an identity, and its set; "", 0 for none."""
        model = self._models.get(key)
        return model.first_param if model is not None else ("", 0)

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

    def registered_after(self, params: int, optimizer: int) -> Site | None:
        """Return the line that made one of these parameters after an optimizer was made; None if there is none."""
        living = [one for number in bit_positions(params) if (one := self._index.param(number)) is not None]
        known = [self._registered[one] for one in living if one in self._registered]
        return next((site for optimizers, site in known if optimizers > optimizer), None)

    def note_depths(self, leaves: list[tuple[Tensor, int]]) -> None:
        """Note how far from the loss the parameters are."""
        for leaf, distance in leaves:
            if bit := self._index.known_bits([leaf]):
                self.order[bit.bit_length() - 1] = distance


def _mode_sensitive(module: nn.Module) -> bool:
    """Does a module work otherwise in training than in evaluation?"""
    if isinstance(module, _torch.NormBase):
        return module.running_mean is not None
    if isinstance(module, _torch.DropoutNd):
        return module.p > 0
    if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
        return module.dropout > 0
    forward = type(module).forward
    own = not type(module).__module__.startswith("torch.")
    return own and "training" in getattr(getattr(forward, "__code__", None), "co_names", ())
