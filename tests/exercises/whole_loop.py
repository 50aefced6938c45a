"""Answers to the exercise ``whole_loop``: right ones, and one for each typical mistake."""

import torch
from torch.nn.utils import clip_grad_norm_


def by_slices(model, loss_fn, batches, lr, window, max_norm):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        optimizer.zero_grad()
        for x, y in part:
            (loss_fn(model(x), y) / len(part)).backward()
        clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()


def by_counting(model, loss_fn, batches, lr, window, max_norm):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    whole = len(batches) // window * window
    for i, (x, y) in enumerate(batches):
        by = window if i < whole else len(batches) - whole
        loss = loss_fn(model(x), y) / by
        loss.backward()
        if (i + 1) % window == 0 or i + 1 == len(batches):
            clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()


def never_clears(model, loss_fn, batches, lr, window, max_norm):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        for x, y in part:
            (loss_fn(model(x), y) / len(part)).backward()
        clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()


def not_divided(model, loss_fn, batches, lr, window, max_norm):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for i, (x, y) in enumerate(batches, 1):
        loss_fn(model(x), y).backward()
        if i % window == 0 or i == len(batches):
            clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()


def divided_by_window(model, loss_fn, batches, lr, window, max_norm):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for i, (x, y) in enumerate(batches, 1):
        (loss_fn(model(x), y) / window).backward()
        if i % window == 0 or i == len(batches):
            clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()


def last_dropped(model, loss_fn, batches, lr, window, max_norm):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    optimizer.zero_grad()
    for i, (x, y) in enumerate(batches, 1):
        (loss_fn(model(x), y) / window).backward()
        if i % window == 0:
            clip_grad_norm_(model.parameters(), max_norm)
            optimizer.step()
            optimizer.zero_grad()


def clips_each(model, loss_fn, batches, lr, window, max_norm):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        optimizer.zero_grad()
        for x, y in part:
            (loss_fn(model(x), y) / len(part)).backward()
            clip_grad_norm_(model.parameters(), max_norm)
        optimizer.step()


def never_clips(model, loss_fn, batches, lr, window, max_norm):
    by_slices(model, loss_fn, batches, lr, window, float("inf"))


RIGHT = (by_slices, by_counting)
WRONG = {
    "never-clears": never_clears,
    "not-divided": not_divided,
    "divided-by-window": divided_by_window,
    "last-window-dropped": last_dropped,
    "clips-each-batch": clips_each,
    "never-clips": never_clips,
}
