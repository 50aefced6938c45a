"""The words under the pictures: what is the case, what is wrong, and what the Lab has to say about it."""

from __future__ import annotations

import html


def words(state: str, alarm: str, note: str, *, live: bool) -> str:
    """Return the words as HTML; ``live`` has a screen reader read them out as they change."""
    chip = f'<div><span class="gl-chip" role="alert">⚠ {html.escape(alarm)}</span></div>' if alarm else ""
    return (
        f'<div class="gl-words"><div role="status" aria-live="{"polite" if live else "off"}">{html.escape(state)}</div>'
        f'{chip}<div class="gl-note">{html.escape(note)}</div></div>'
    )
