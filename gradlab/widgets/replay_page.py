"""A recording as one HTML file: the browser's modules, the frames, and a still picture for where scripts do not run."""

from __future__ import annotations

import base64
import gzip
import html
import json
from typing import Any

from ..formatting import html_page, png_img
from ..front import joined_module, style_sheet

_STYLE = """\
body { margin: 0 auto; max-width: 1500px; padding: 8px; }
@media (prefers-color-scheme: dark) { body { background: #1b1d21; color: #ececec; } }
header { padding: 0 8px; font: 16px/1.4 system-ui, "DejaVu Sans", sans-serif; }
h1 { margin: 4px 0; font-size: 1.35em; }
header p { margin: 0 0 8px; }
"""


def replay_page(
    recording: dict[str, Any],
    title: str,
    caption: str,
    words: str,
    png: bytes,
    entry: str = "replay",
    start: str = "startReplay",
) -> str:
    """Return the document, in which the function ``start`` of the module ``entry`` plays; it loads nothing else.

    ``caption`` stands below the title; ``words`` say what the picture ``png`` shows, where scripts do not run.
    """
    told = json.dumps(recording, separators=(",", ":"), ensure_ascii=False, default=list)
    packed = base64.b64encode(gzip.compress(told.encode(), 9, mtime=0)).decode()
    module = joined_module(entry).replace("</script", "<\\/script")
    content = f"""<header><h1>{html.escape(title)}</h1><p>{html.escape(caption)}</p></header>
<main id="lab"></main>
<noscript>{png_img(png, words, 800)}<p>{html.escape(words)}</p></noscript>
<script type="text/plain" id="recording">{packed}</script>
<script type="module">
{module}
{start}(document.getElementById("lab"), document.getElementById("recording").textContent);
</script>
"""
    return html_page(title, content, _STYLE + style_sheet(), '<link rel="icon" href="data:,">\n')
