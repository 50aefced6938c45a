"""The doctor's rules, in one file per theme. Each rule receives facts about the training loop and reports findings.

A false alarm costs more trust than a miss, so a rule waits for a second occurrence if the first could be chance.
RULES is collected automatically: it holds every subclass of Rule that has codes and is defined in this folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules

from .base import Rule, RuleContext

RULES: tuple[type[Rule], ...] = tuple(
    value
    for module in sorted(f"{__name__}.{module_info.name}" for module_info in iter_modules(__path__))
    for value in vars(import_module(module)).values()
    if isinstance(value, type) and issubclass(value, Rule) and value.__module__ == module and value.codes
)
"""All rules, in the order in which they receive facts: by module name, then by position in the module."""

KNOWN_CODES = frozenset(code.name for rule in RULES for code in rule.codes)


def check_codes(codes: Iterable[str], where: str) -> None:
    """Raise TypeError if ``codes`` is a str or not iterable, or ValueError for an unknown code; both name ``where``."""
    if isinstance(codes, str) or not isinstance(codes, Iterable):
        raise TypeError(f"{where} must be a list of codes such as ['missing-zero-grad'], got {codes!r}")
    for code in codes:
        if code not in KNOWN_CODES:
            near = get_close_matches(str(code).lower(), sorted(KNOWN_CODES), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; the codes are {', '.join(sorted(KNOWN_CODES))}"
            raise ValueError(f"{where}: there is no code {code!r}{hint}")


__all__ = ["KNOWN_CODES", "RULES", "Rule", "RuleContext", "check_codes"]
