"""Words for learners as HTML."""

from __future__ import annotations

import html
import re


def prose(text: str) -> str:
    """Return a text as HTML: what stands between backticks is code, a line break is one."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False)).replace("\n", "<br>")
