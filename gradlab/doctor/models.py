"""The models that the learner's code calls: their parameters, and the modules in them that have two moods."""

from __future__ import annotations

import weakref
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

from . import graphs
from .pages import Pages

_MOST = 500  # models, some of them long gone


class Model:
    """A module that is called from outside of any other."""

    def __init__(self, module: nn.Module, pages: Pages) -> None:
        """Look at what it is made of."""
        self.module = weakref.ref(module)
        self.calls = 0
        self.look(module, pages)

    def look(self, module: nn.Module, pages: Pages) -> None:
        """See its parameters and modules as they are now."""
        self.pages = pages.of(module.parameters())
        self.sensitive = [weakref.ref(one) for one in module.modules() if _two_moods(one)]

    def moods(self) -> tuple[str, str]:
        """Return the kind of a module that is in training, and of one that is in evaluation; "" for none."""
        moody = calm = ""
        for reference in self.sensitive:
            if (module := reference()) is not None:
                if module.training:
                    moody = moody or type(module).__name__
                else:
                    calm = calm or type(module).__name__
        return moody, calm


class Models:
    """All models that were called, by identity."""

    def __init__(self, pages: Pages) -> None:
        """Start with none; parameters go to ``pages``."""
        self._pages = pages
        self._models: dict[int, Model] = {}
        self.order: dict[int, int] = {}
        """Page number -> nodes of the graph between the parameter and a loss."""

    def see(self, module: nn.Module) -> Model:
        """Return the model of a module, looked at again now and then: parts can be exchanged."""
        model = self._models.get(id(module))
        if model is None or model.module() is not module:
            if len(self._models) >= _MOST:
                self._models = {key: one for key, one in self._models.items() if one.module() is not None}
            model = self._models[id(module)] = Model(module, self._pages)
        model.calls += 1
        if model.calls <= 4 or model.calls & (model.calls - 1) == 0 or model.calls % 256 == 0:
            model.look(module, self._pages)
        return model

    def all(self) -> list[Model]:
        """Return all models, those that are alive looked at once more."""
        for model in self._models.values():
            if (module := model.module()) is not None:
                model.look(module, self._pages)
        return list(self._models.values())

    def reach(self, node: Any) -> None:
        """Note how far from the loss the parameters are."""
        for leaf, distance in graphs.leaves(node):
            if page := self._pages.known([leaf]):
                self.order[page.bit_length() - 1] = distance


def _two_moods(module: nn.Module) -> bool:
    """Does a module work otherwise in training than in evaluation?"""
    if isinstance(module, _NormBase):
        return module.running_mean is not None
    if isinstance(module, _DropoutNd):
        return module.p > 0
    if isinstance(module, (nn.RNNBase, nn.MultiheadAttention)):
        return module.dropout > 0
    forward = type(module).forward
    own = not type(module).__module__.startswith("torch.")
    return own and "training" in getattr(getattr(forward, "__code__", None), "co_names", ())
