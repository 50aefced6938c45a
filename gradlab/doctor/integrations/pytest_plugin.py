"""The plugin of pytest: a test marked ``@pytest.mark.trains`` fails if the doctor finds something wrong in its loop.

pytest loads it from the entry point in ``pyproject.toml``. It imports torch only when such a test runs.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ..reports import FindingFilter

_MARKER = "trains"
_HELP = (
    f"{_MARKER}(select=(), ignore=(), fail_on='warning'): the test trains a model, and fails if the doctor of gradlab "
    "finds something wrong in its loop; the arguments win over [tool.gradlab.doctor] in pyproject.toml"
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _HELP)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Watch a marked test; fail with the report as the reason, or add it to the error that the test ends with."""
    marker = item.get_closest_marker(_MARKER)
    if marker is None:
        return (yield)
    wanted = _wanted(item, marker)
    from ..watching import watch  # torch, at last

    report, failed = watch(also=wanted.select), True
    try:
        with report:
            result = yield
        failed = False
    finally:
        wanted.apply(report)
        if report.findings and (failed or not wanted.fails(report.findings)):
            item.add_report_section("call", "gradlab doctor", report.text)
    if wanted.fails(report.findings):
        pytest.fail(report.text, pytrace=False)
    return result


def _wanted(item: pytest.Item, marker: pytest.Mark) -> FindingFilter:
    """Return which findings count in a test, by its marker and the settings beside it."""
    from .. import FindingFilter, read_settings

    if marker.args:
        raise pytest.UsageError(f"{item.nodeid}: {_MARKER} takes select=, ignore= and fail_on=, got {marker.args}")
    asked: dict[str, Any] = dict(marker.kwargs)
    for name in {"select", "ignore"} & set(asked):
        codes = asked[name]
        asked[name] = (codes,) if isinstance(codes, str) else tuple(codes)
    try:
        return FindingFilter(**read_settings(item.path) | asked)
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"{item.nodeid}: {_MARKER}: {error}") from None
