"""``%%doctor``: a cell of a notebook under ``watch``, with the report below it."""

from __future__ import annotations

import ast
from typing import Any


def add_doctor_magic(shell: Any) -> None:
    """Give an IPython shell ``%%doctor``."""

    def doctor(line: str, cell: str) -> Any:
        """Run the cell, and say what is wrong with its training loop."""
        if line.strip():
            raise ValueError(f"%%doctor takes no arguments, got {line.strip()!r}")
        from IPython.display import display

        from ..reports import FindingFilter
        from ..watching import watch

        # IPython takes empty lines off the top, and the line of %%doctor is not in the cell: line numbers count both.
        above = 1 + next((number for number, line in enumerate(cell.splitlines()) if line.strip()), 0)
        source = "\n" * above + shell.transform_cell(cell)
        file = shell.compile.cache(source, shell.execution_count)
        parsed = shell.transform_ast(ast.parse(source, file))
        last = parsed.body.pop() if parsed.body and isinstance(parsed.body[-1], ast.Expr) else None
        statements = compile(parsed, file, "exec")
        expression = compile(ast.Expression(last.value), file, "eval") if last is not None else None
        report = watch()
        try:
            with report:
                exec(statements, shell.user_ns)
                # The learner's own cell, as IPython would run it.
                value = eval(expression, shell.user_ns) if expression is not None else None  # nosec B307
        except BaseException as error:
            # IPython is to show it as if the cell had no magic: the doctor's frames are stripped by now.
            words = shell.InteractiveTB.structured_traceback(type(error), error, error.__traceback__, tb_offset=0)
            error._render_traceback_ = lambda: words  # type: ignore[attr-defined]  # what IPython asks an error for
            raise
        finally:
            FindingFilter().apply(report)
            display(report)
        return None if source.rstrip().endswith(";") else value

    shell.register_magic_function(doctor, "cell")
