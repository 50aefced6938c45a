"""Packages that import the module of a public name when the name is first used."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any


class LazyPackage(ModuleType):
    """A package that imports the module of a public name when the name is first used.

    A public name takes precedence over a module of the same name: ``from gradlab.widgets import predict`` gives the
    function, even if the module ``gradlab.widgets.predict`` was imported before.
    """

    _homes: Mapping[str, str]
    _needs_torch: bool

    def __getattr__(self, name: str) -> Any:
        if name not in self._homes:
            names = ", ".join(sorted(self._homes))
            raise AttributeError(f"{self.__name__} has no attribute {name!r}; choose from {names}")
        if self._needs_torch:
            from ._torch import require_torch  # imported here to keep ``import gradlab`` fast

            require_torch()
        home = self._homes[name]
        if home == ".":  # the name is a submodule of the package
            value: Any = importlib.import_module(f".{name}", self.__name__)
        else:
            value = getattr(importlib.import_module(home, self.__name__), name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # Importing a module sets an attribute of its package; this attribute must not hide a public name.
        if not (name in self._homes and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self._homes})


def load_lazily(package: str, needs_torch: bool = True) -> None:
    """Make public the names that a package imports for type checkers, and import each when it is first used.

    The lines ``from .module import Name as Name`` below ``if TYPE_CHECKING:`` in the package's ``__init__.py`` are the
    only list of these names. If PyTorch is missing or too old, the first use of a name raises ImportError, unless
    ``needs_torch`` is False because some names of the package work without torch.
    """
    module = sys.modules[package]
    tree = ast.parse(pkgutil.get_data(package, "__init__.py") or b"")
    homes = {
        alias.name: "." * line.level + (line.module or "")
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    module.__dict__.update(_homes=homes, _needs_torch=needs_torch, __all__=sorted(homes))
    module.__class__ = LazyPackage
