"""What importing the forecast brings along, and that the function and the folder of its name do not mix."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gradlab.forecast as by_import
from gradlab import forecast

TORCH = "import sys; assert not {'torch', 'matplotlib', 'ipywidgets'} & set(sys.modules)"
# What may have been imported before, in a single interpreter that forgets gradlab in between.
ORDERS = """
import sys, types
for first in (
    "",
    "import gradlab.forecast",
    "import gradlab.forecasting.estimate",
    "from gradlab.forecasting import forecast",
    "import gradlab.widgets.forecast_lab",
):
    for name in [name for name in sys.modules if name.split(".")[0] == "gradlab"]:
        del sys.modules[name]
    for _ in range(2):
        exec(first)
        import gradlab
        from gradlab import forecast
        from gradlab.forecasting import forecast as own
        assert type(forecast) is types.FunctionType, first
        assert forecast is own is gradlab.forecast, first
"""


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_gradlab_forecast_is_the_function_whatever_was_imported_before() -> None:
    run(ORDERS)


def test_gpus_and_model_sizes_need_no_torch() -> None:
    names = "GPUS, model_sizes, usable_bytes, model_size"
    run(f"from gradlab.forecasting import {names}; import gradlab.__main__; model_size('llama-8b'); {TORCH}")


def test_every_public_name_is_there() -> None:
    assert by_import is forecast  # `import a.b as c` reads the attribute of a, which is the function
    module = sys.modules["gradlab.forecast"]
    assert all(getattr(module, name) is not None for name in module.__all__)
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(
        AttributeError, match=r"gradlab\.forecast has no name 'forecasts'; it has Forecast, ForecastError"
    ):
        module.forecasts  # noqa: B018
