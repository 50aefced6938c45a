"""Packages whose public names load their module when they are first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package that finds a public name in its module when somebody asks for it.

    A public name wins over a module of the same name: ``from gradlab import forecast`` is the function, whatever part
    of the package ``gradlab.forecast`` was imported before.
    """

    _homes: Mapping[str, str]

    def __getattr__(self, name: str) -> Any:
        if name not in self._homes:
            raise AttributeError(f"{self.__name__} has no name {name!r}; it has {', '.join(sorted(self._homes))}")
        home = importlib.import_module(self._homes[name], self.__name__)
        value = home if home.__name__ == f"{self.__name__}.{name}" and not hasattr(home, name) else getattr(home, name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # Importing a module makes it an attribute of its package, which must not hide a public name.
        if not (name in self._homes and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._homes})


def load_lazily(package: str, homes: Mapping[str, str]) -> None:
    """Let a package find its public names in their modules; ``homes`` is ``{"Recipe": ".recipe"}``, name to module."""
    module = sys.modules[package]
    module.__dict__.update(_homes=homes, __all__=sorted(homes))
    module.__class__ = LazyPackage
