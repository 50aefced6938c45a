"""What is kept of a widget: a page of its own, and the picture and the words in a saved notebook."""

from __future__ import annotations

import base64
import html
from typing import Any


def html_page(source: str, line: int, png: bytes, words: str) -> str:
    """Return a complete HTML document; ``line`` (from 1) is the line that ran last."""
    rows = "\n".join(
        f"<mark>{html.escape(text)}</mark>" if number == line else html.escape(text)
        for number, text in enumerate(source.splitlines(), 1)
    )
    picture = base64.b64encode(png).decode()
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>gradlab</title>
<style>body {{ font-family: sans-serif; max-width: 1000px; margin: 1em auto; padding: 0 1em; }}
img {{ max-width: 100%; }}
pre {{ border: 1px solid #ccc; padding: .5em; overflow-x: auto; }} mark {{ background: #cde8f7; }}</style>
<pre>{rows}</pre>
<img alt="{html.escape(words, quote=True)}" src="data:image/png;base64,{picture}">
<p>{html.escape(words)}</p>
</html>
"""


def mimebundle(model_id: str, png: bytes, words: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the rich output of a widget: its live view, with a picture and words for where there is no kernel."""
    data = {
        "application/vnd.jupyter.widget-view+json": {"version_major": 2, "version_minor": 0, "model_id": model_id},
        "image/png": base64.b64encode(png).decode(),
        "text/plain": words,
    }
    # The picture is drawn at twice the density of the page; a PNG holds its width in bytes 16 to 20.
    return data, {"image/png": {"width": int.from_bytes(png[16:20], "big") // 2}}
