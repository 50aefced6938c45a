"""Answers to the exercise ``keeps_grad``: right ones, and one for each typical mistake."""


def by_columns(tensor):
    return tensor.requires_grad and (tensor.is_leaf or tensor.retains_grad)


def by_cases(tensor):
    if not tensor.requires_grad:
        return False
    if tensor.grad_fn is None:
        return True
    return tensor.retains_grad


RIGHT = (by_columns, by_cases)
WRONG = {
    "requires-grad": lambda tensor: tensor.requires_grad,
    "every-leaf": lambda tensor: tensor.grad_fn is None,
    "leaf-or-retained": lambda tensor: tensor.is_leaf or tensor.retains_grad,
    "no-retain": lambda tensor: tensor.requires_grad and tensor.grad_fn is None,
    "grad-fn": lambda tensor: not tensor.is_leaf,
    "retained-only": lambda tensor: tensor.retains_grad,
    "has-one-now": lambda tensor: tensor.is_leaf and tensor.grad is not None,
}
