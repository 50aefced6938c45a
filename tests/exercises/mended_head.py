"""Answers to the exercise ``mended_head``: right ones, and one for each typical mistake."""

import torch
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR


def mended(body, head, loss_fn, batches, lr):
    model, total = nn.Sequential(body), 0.0
    model.append(head)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = ExponentialLR(optimizer, gamma=0.99)
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    return total / len(batches)


def detached(body, head, loss_fn, batches, lr):
    model, total = nn.Sequential(body, head), 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = ExponentialLR(optimizer, gamma=0.99)
    for x, y in batches:
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        scheduler.step()
        total += loss.detach()
    return total / len(batches)


def optimizer_first(body, head, loss_fn, batches, lr):
    model, total = nn.Sequential(body), 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = ExponentialLR(optimizer, gamma=0.99)
    model.append(head)
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    return total / len(batches)


def scheduler_first(body, head, loss_fn, batches, lr):
    model, total = nn.Sequential(body, head), 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = ExponentialLR(optimizer, gamma=0.99)
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        scheduler.step()
        optimizer.step()
        total += loss.item()
    return total / len(batches)


def sums_graphs(body, head, loss_fn, batches, lr):
    model, total = nn.Sequential(body, head), 0.0
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = ExponentialLR(optimizer, gamma=0.99)
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss
    return total / len(batches)


def once_an_epoch(body, head, loss_fn, batches, lr):
    model, losses = nn.Sequential(body, head), []
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    scheduler = ExponentialLR(optimizer, gamma=0.99)
    for x, y in batches:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    scheduler.step()
    return sum(losses) / len(losses)


def returning(result, gamma=0.99):
    def loop(body, head, loss_fn, batches, lr):
        model, losses = nn.Sequential(body, head), []
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        scheduler = ExponentialLR(optimizer, gamma=gamma)
        for x, y in batches:
            optimizer.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        return result(losses)

    return loop


RIGHT = (mended, detached)
WRONG = {
    "head-left-out": optimizer_first,
    "scheduler-first": scheduler_first,
    "history-kept": sums_graphs,
    "lr-stays": once_an_epoch,
    "ten-percent": returning(lambda losses: sum(losses) / len(losses), gamma=0.9),
    "sum": returning(sum),
    "last": returning(lambda losses: losses[-1]),
    "last-divided": returning(lambda losses: losses[-1] / len(losses)),
}
