"""Gradient provenance: which backward passes each ``.grad`` contains, and how many steps have applied each pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .contributions import Contribution as Contribution
    from .contributions import Contributions as Contributions
    from .contributions import GradContents as GradContents
    from .contributions import ParameterHistory as ParameterHistory
    from .contributions import Span as Span
    from .contributions import union as union
    from .contributions import within as within
    from .provenance import Provenance as Provenance

load_lazily(__name__)
