"""A recording as a page without a kernel needs it: packed as text, with the words and the picture beside it."""

from __future__ import annotations

import base64
import gzip
import html
import json
from dataclasses import dataclass, field
from typing import Any, Literal

from ..formatting import html_page, png_img
from ..front import joined_module, style_sheet
from .live import Still

_ENTRIES = {"replay": ("replay", "startReplay"), "instrument": ("instrument_page", "startInstrument")}
"""The module that plays each kind, and its function that starts."""
_PAGE_STYLE = """\
body { margin: 0 auto; max-width: 1500px; padding: 8px; }
@media (prefers-color-scheme: dark) { body { background: #1b1d21; color: #ececec; } }
header { padding: 0 8px; font: 16px/1.4 system-ui, "DejaVu Sans", sans-serif; }
h1 { margin: 4px 0; font-size: 1.35em; }
header p { margin: 0 0 8px; }
"""


@dataclass(frozen=True)
class Packed:
    """A recording, packed: ``page`` makes one document of it; a site can hold many of them beside one script."""

    kind: Literal["replay", "instrument"]
    title: str
    caption: str
    """What a reader can do with it."""
    words: str
    """What the picture shows."""
    still: Still = field(repr=False)
    packed: str = field(repr=False)
    """The recording as JSON, compressed by gzip, as base64."""

    def page(self) -> str:
        """Return one HTML document that plays everywhere, without a kernel and without a network."""
        entry, start = _ENTRIES[self.kind]
        module = joined_module(entry).replace("</script", "<\\/script")
        icon = '<link rel="icon" href="data:,">\n'  # or browsers ask for one
        content = f"""<header><h1>{html.escape(self.title)}</h1><p>{html.escape(self.caption)}</p></header>
<main id="lab"></main>
<noscript>{png_img(self.still.png(), self.words, 800)}<p>{html.escape(self.words)}</p></noscript>
<script type="text/plain" id="recording">{self.packed}</script>
<script type="module">
{module}
{start}(document.getElementById("lab"), document.getElementById("recording").textContent);
</script>
"""
        return html_page(self.title, content, _PAGE_STYLE + style_sheet(), icon)


def packed_text(recording: dict[str, Any]) -> str:
    """Return a recording as the text that a page unpacks; the same recording gives the same text."""
    told = json.dumps(recording, separators=(",", ":"), ensure_ascii=False, default=list)
    return base64.b64encode(gzip.compress(told.encode(), 9, mtime=0)).decode()
