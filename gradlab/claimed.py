"""The claims that notebook 12 puts to the test, each with its home in the series."""

from __future__ import annotations

from dataclasses import dataclass

ARTICLES = {
    "A": "gradients, zero_grad and optimizers",
    "B": "zero_grad and training",
    "C": "zeroing is not enough",
    "D": "accumulation",
}


@dataclass(frozen=True)
class Claim:
    """What somebody says, in our words, and the notebook of the series that is about it."""

    code: str
    """The article's letter and a number: ``"A6"``."""
    text: str
    """One sentence; code between backticks."""
    home: str
    """``"04_zero_grad"``."""


CLAIMS = {
    code: Claim(code, text, home)
    for code, text, home in (
        (
            "A1",
            "Leaves that ask for a gradient keep `.grad`; other tensors only after `retain_grad()`.",
            "01_autograd",
        ),
        ("A2", "`backward()` on a loss with one value starts from a gradient of 1.", "01_autograd"),
        ("A3", "`backward()` adds to `.grad`, as the line `p.grad = (p.grad or 0) + dp` does.", "02_backward_adds"),
        ("A4", "`backward()` moves no weight.", "01_autograd"),
        ("A5", "Without clearing, batches mix in `.grad`, and the updates are incorrect.", "02_backward_adds"),
        ("A6", "`optimizer.zero_grad()` and `model.zero_grad()` have the same effect.", "04_zero_grad"),
        ("A7", "`optimizer.zero_grad()` and `model.zero_grad()` fill `.grad` with zeros.", "05_set_to_none"),
        ("A8", "Inside, `zero_grad()` is `p.grad = p.grad.detach().zero_()`.", "05_set_to_none"),
        (
            "A9",
            "If the optimizer has a subset of the parameters, `model.zero_grad()` clears the others, too.",
            "04_zero_grad",
        ),
        ("A10", "`set_to_none` must be asked for.", "05_set_to_none"),
        ("A11", "`set_to_none` saves a kernel and memory bandwidth.", "05_set_to_none"),
        ("A12", "With `set_to_none`, clipping needs a check for `None`.", "05_set_to_none"),
        ("A13", "A formula for Adam in three lines is what `torch.optim.Adam` computes.", "06_optimizer_step"),
        ("A14", "The order zero, forward, backward, step always matters.", "04_zero_grad"),
        (
            "A15",
            "Dividing the loss by the window makes the gradient that of the large batch.",
            "07_gradient_accumulation",
        ),
        ("A16", "The usual accumulation loop uses every batch.", "07_gradient_accumulation"),
        ("A17", "Clip after the whole window, before the step.", "07_gradient_accumulation"),
        ("A18", "With a `GradScaler`, unscale first, then clip.", "08_mixed_precision"),
        (
            "A19",
            "`torch.cuda.amp.GradScaler()` and `torch.cuda.amp.autocast()` are the calls to use.",
            "08_mixed_precision",
        ),
        ("A20", "A wildly swinging loss means a forgotten `zero_grad()`.", "03_forgetting_zero_grad"),
        (
            "A21",
            "Training is slow because large gradients are zeroed on the CPU and then sent over.",
            "05_set_to_none",
        ),
        ("A22", "Out of memory in `backward()`: accumulate, or use checkpointing.", "09_gpu_memory"),
        ("B1", "`zero_grad()` does not touch the weights.", "04_zero_grad"),
        ("B2", "Without `zero_grad()`, a printed gradient contains the earlier ones.", "02_backward_adds"),
        (
            "B3",
            "Without `zero_grad()`, a model does not converge, or only very poorly.",
            "03_forgetting_zero_grad",
        ),
        ("B4", "With `zero_grad()`, each gradient is that of the current batch alone.", "04_zero_grad"),
        ("B5", "With `set_to_none=True`, the gradients printed after a step are `None`.", "05_set_to_none"),
        ("B6", "`set_to_none=True` needs less memory and less computing.", "05_set_to_none"),
        ("B7", "`None` or zeros: the effect on the model is the same in the end.", "05_set_to_none"),
        ("B8", "All this holds for most optimizers.", "03_forgetting_zero_grad"),
        ("C1", "Filling with zeros keeps the memory allocated.", "05_set_to_none"),
        ("C2", "Without accumulation, `backward()` adds to zero: an addition for nothing.", "05_set_to_none"),
        ("C3", "After releasing, `backward()` assigns instead of adding.", "05_set_to_none"),
        ("C4", "Two reads, an addition and a write become one write.", "05_set_to_none"),
        ("C5", "Releasing the gradients allows a larger batch or model.", "05_set_to_none"),
        ("C6", "With 405 billion parameters, at 2 TB/s, the transfer takes a significant time.", "05_set_to_none"),
        ("C7", "For small models, filling with zeros is good enough.", "05_set_to_none"),
        ("C8", "After four micro-batches `.grad` is the sum of four gradients.", "02_backward_adds"),
        ("D1", "Accumulation gives larger batches without more memory.", "07_gradient_accumulation"),
        (
            "D2",
            "Stepping every 4 samples without dividing the loss is the same as a batch of 4.",
            "07_gradient_accumulation",
        ),
        ("D3", "A linear model on 8 samples, lr 0.01, in that loop, learns.", "07_gradient_accumulation"),
        ("D4", "Always clear before you start to accumulate.", "07_gradient_accumulation"),
        ("D5", "Who forgets to clear adds old gradients again.", "03_forgetting_zero_grad"),
    )
}
