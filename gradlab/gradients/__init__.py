"""Which backward is in which ``.grad``, and which of them a step has already used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .contributions import Contribution as Contribution
    from .contributions import Contributions as Contributions
    from .parameter import ParameterHistory as ParameterHistory
    from .provenance import GradContents as GradContents
    from .provenance import Provenance as Provenance
    from .spans import Span as Span
    from .spans import union as union
    from .spans import within as within

load_lazily(__name__)
