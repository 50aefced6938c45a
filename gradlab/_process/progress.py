"""A progress bar without a thread."""

from __future__ import annotations

from typing import Any


def progress_bar(total: int, words: str, **options: Any) -> Any:
    """Return tqdm's bar, shown after a second and gone at the end, without the thread that tqdm starts beside it.

    Where no thread can be started tqdm warns of it. All that the thread does is to move a bar that is rarely told.
    """
    from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[misc, type-arg, unused-ignore]
        monitor_interval = 0

    return Bar(total=total, desc=words, delay=1, leave=False, **options)
