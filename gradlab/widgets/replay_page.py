"""A recording as one HTML file: the browser's modules, the frames, and a still picture for where scripts do not run."""

from __future__ import annotations

import base64
import gzip
import html
import json
from typing import Any

from ..formatting import png_img
from ..front import joined_module, style_sheet


def replay_page(
    recording: dict[str, Any],
    title: str,
    words: str,
    png: bytes,
    entry: str = "replay",
    start: str = "startReplay",
) -> str:
    """Return the document, in which the function ``start`` of the module ``entry`` plays; it loads nothing else."""
    told = json.dumps(recording, separators=(",", ":"), ensure_ascii=False, default=list)
    packed = base64.b64encode(gzip.compress(told.encode(), 9, mtime=0)).decode()
    module = joined_module(entry).replace("</script", "<\\/script")
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title>
<link rel="icon" href="data:,">
<style>
body {{ margin: 0 auto; max-width: 1500px; padding: 8px; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #1b1d21; color: #ececec; }} }}
{style_sheet()}</style>
<main id="lab"></main>
<noscript>{png_img(png, words, 800)}<p>{html.escape(words)}</p></noscript>
<script type="text/plain" id="recording">{packed}</script>
<script type="module">
{module}
{start}(document.getElementById("lab"), document.getElementById("recording").textContent);
</script>
</html>
"""
