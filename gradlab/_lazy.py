"""Names of a package that load their module when they are first used."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module-level ``__getattr__`` for a package.

    ``homes`` maps each public name to the module that defines it, relative to the package: ``{"Recipe": ".recipe"}``.
    Any other name is an AttributeError that lists those that exist.
    """

    def getattr_(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"{package} has no name {name!r}; it has {', '.join(sorted(homes))}")
        value = getattr(importlib.import_module(homes[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return getattr_
