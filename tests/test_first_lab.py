"""Modules that a lab's first picture must not load."""

from __future__ import annotations

import subprocess
import sys

import pytest

NOT_NEEDED = (
    "torch._dynamo",
    "sympy",
    "networkx",
    "matplotlib.pyplot",
    "matplotlib.backends.backend_svg",
    "matplotlib.backends.backend_pdf",
    "requests",
    "urllib3",
)
FIRST_LAB = f"""
import sys
from gradlab import Lab
lab = Lab()
assert "image/png" in lab._repr_mimebundle_()[0]
lab.run(3)
print(*(name for name in {NOT_NEEDED} if name in sys.modules))
"""


@pytest.mark.slow
def test_the_first_picture_needs_neither_compiler_nor_pyplot() -> None:
    result = subprocess.run([sys.executable, "-c", FIRST_LAB], capture_output=True, text=True, check=True, timeout=300)
    assert result.stdout.split() == []
