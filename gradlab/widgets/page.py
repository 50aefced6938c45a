"""A Lab as a page of its own: the loop, the pictures and the words, in one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import html


def page(source: str, line: int, png: bytes, words: str) -> str:
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
