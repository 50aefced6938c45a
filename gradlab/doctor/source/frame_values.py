"""The values that expressions have in a function that is still running; none of the learner's functions is called."""

from __future__ import annotations

import ast
import operator
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from ... import _torch
from ..._frames import variables

NO_VALUE = object()
_SAME_SHAPE = ("detach", "float", "double", "half", "clone", "contiguous", "to", "cpu", "cuda")
_OTHER_SHAPE = ("view", "reshape", "flatten", "squeeze", "unsqueeze")
_INDEX = (ast.Constant, ast.Slice, ast.Tuple, ast.BinOp, ast.UnaryOp, ast.Name, ast.operator, ast.unaryop, ast.Load)
_WHOLE: dict[type[ast.operator], Any] = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul}


class FrameValues:
    """The variables of a function and of its file."""

    def __init__(self, frame: FrameType) -> None:
        self._values = {**frame.f_globals, **variables(frame)}

    def of(self, node: ast.AST) -> Any:
        """Return the value of a name, of an attribute that is stored in an object, or of an item; NO_VALUE for others.

        Of ``y.float()`` and the like it is ``y``, which has the same shape; of whole numbers, also what they add up to.
        """
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BinOp) and type(node.op) in _WHOLE:
            left, right = self.of(node.left), self.of(node.right)
            return _WHOLE[type(node.op)](left, right) if type(left) is type(right) is int else NO_VALUE
        if isinstance(node, ast.Name):
            return self._values.get(node.id, NO_VALUE)
        if isinstance(node, ast.Attribute):
            owner = self.of(node.value)
            stores = [getattr(owner, "__dict__", {})]
            if isinstance(owner, nn.Module):
                stores += [vars(owner).get(name, {}) for name in ("_parameters", "_buffers", "_modules")]
            return next((store[node.attr] for store in stores if node.attr in store), NO_VALUE)
        if isinstance(node, ast.Subscript):
            return self._item(self.of(node.value), node.slice)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return self._reshaped(self.of(node.func.value), node.func.attr, node.args)
        return NO_VALUE

    def _reshaped(self, owner: Any, method: str, args: list[ast.expr]) -> Any:
        try:
            if method in _OTHER_SHAPE and type(owner) is Tensor:
                with torch.no_grad(), _torch.disable_current_modes():  # the learner's own modes are not to see this
                    return getattr(owner, method)(*map(ast.literal_eval, args))
        except (ValueError, LookupError, RuntimeError):  # no numbers, or no such shape
            pass
        return owner if method in _SAME_SHAPE else NO_VALUE

    def _item(self, owner: Any, index: ast.expr) -> Any:
        parts = list(ast.walk(index))
        names = {one.id: self.of(one) for one in parts if isinstance(one, ast.Name)}
        plain = all(isinstance(one, _INDEX) for one in parts) and all(
            type(value) in (int, slice, str, Tensor) for value in names.values()
        )
        if not plain or type(owner) not in (Tensor, dict, list, tuple):
            return NO_VALUE
        item = ast.Subscript(ast.Name("owner of it", ast.Load()), index, ast.Load())
        code = compile(ast.fix_missing_locations(ast.Expression(item)), "<index>", "eval")
        try:
            with torch.no_grad(), _torch.disable_current_modes():
                # Only an index of names and numbers: _INDEX has no calls and no attributes.
                return eval(code, {}, {**names, "owner of it": owner})  # nosec B307
        except (LookupError, TypeError, ValueError, RuntimeError):  # the variables may have changed since
            return NO_VALUE
