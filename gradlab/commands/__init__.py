"""The commands of ``gradlab``: a module each, found by being here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .found import BAD_INPUT as BAD_INPUT
    from .found import add_all as add_all

load_lazily(__name__, needs_torch=False)
