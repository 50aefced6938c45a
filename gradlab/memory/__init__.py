"""The memory ledger, which counts bytes by category while any PyTorch code runs, on real or fake tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .growth import Growth as Growth
    from .growth import GrowthRow as GrowthRow
    from .ledger import Ledger as Ledger
    from .saved_tensors import graph_nodes as graph_nodes
    from .storages import footprint as footprint
    from .storages import iter_tensors as iter_tensors
    from .timeline import CATEGORIES as CATEGORIES
    from .timeline import MOST_POINTS as MOST_POINTS
    from .timeline import MemoryPoint as MemoryPoint

load_lazily(__name__)
