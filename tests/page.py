"""A page without a browser: sends a lab the requests of a learner, and merges the frames of its answers.

It implements the protocol (``gradlab/front/README.md``) independently of ``gradlab.drawing.wire``.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

Frame = dict[str, Any]
Pairs = list[tuple[float, ...]]
_POINT = {"b": 3}  # numbers a point: a band has triples, all other marks pairs


class PanelState:
    """A panel after all frames so far."""

    def __init__(self, fields: Frame) -> None:
        self.head = {
            name: value for name, value in fields.items() if name not in ("ids", "marks") and value is not None
        }
        self.title, self.words = fields["title"], fields.get("words", "")
        self.ids: list[str] = fields["ids"]
        self.marks: list[dict[str, Any]] = fields["marks"]
        assert len(self.ids) == len(self.marks)
        assert len(set(self.ids)) == len(self.ids), "an id names one mark"

    def changed(self, change: Frame) -> PanelState:
        """Return the panel after a change."""
        by_id = dict(zip(self.ids, self.marks, strict=True))
        whole = {**self.head, "ids": self.ids, "marks": [by_id.get(id, {}) for id in change.get("ids", self.ids)]}
        for index, fields in change.get("set", []):
            if "k" in fields:  # a new mark
                whole["marks"][index] = fields
                continue
            mark = {**whole["marks"][index], **fields}
            if "p" in fields:
                length, *tail = fields["p"]
                mark["p"] = whole["marks"][index].get("p", [])[:length] + tail
            whole["marks"][index] = {name: value for name, value in mark.items() if value is not None}
        return PanelState({**whole, **{key: value for key, value in change.items() if key != "set"}})

    def mark(self, id: str) -> dict[str, Any]:
        return self.marks[self.ids.index(id)]

    def texts(self) -> list[str]:
        """Return the visible texts, each in its longest form."""
        notes = [*self.head.get("corner", [])[:1], *(note[0] for note in self.head.get("notes", []))]
        written = [mark["texts"][0] for mark in self.marks if mark["k"] == "t"]
        return [self.title, *notes, *filter(None, [self.head.get("notice")]), *written]

    def all_words(self) -> str:
        """Return the panel's description, its visible texts and the descriptions of its marks."""
        labels = [mark.get("words", "") for mark in self.marks]
        return "\n".join(part for part in (self.words, *self.texts(), *labels) if part)

    def points(self, id: str) -> Pairs:
        """Return the points of a mark, without the gaps in its line."""
        mark = self.mark(id)
        size, numbers = _POINT.get(mark["k"], 2), mark.get("p", [])
        assert len(numbers) % size == 0, "whole points"
        points = [tuple(numbers[index : index + size]) for index in range(0, len(numbers), size)]
        return [point for point in points if None not in point]

    def draggable(self, name: str) -> str:
        """Return the id of the draggable mark with this name."""
        return next(id for id, mark in zip(self.ids, self.marks, strict=True) if mark.get("drag") == name)


class Page:
    """The state of a lab in a page: all frames so far, merged."""

    def __init__(self, lab: Any) -> None:
        self.handle = lab.handle
        self.shown: Frame = {}
        self.values: dict[str, Any] = {}
        self.panels: dict[str, PanelState] = {}
        self.frames: list[Frame] = []
        """Frames of the newest answer."""
        self.bytes = 0
        """Length of the newest answer."""
        self.requests = 0
        self.ask("hello")

    def ask(self, do: Any, **more: Any) -> Page:
        """Send a request and take the answer."""
        self.requests += 1
        request = json.loads(json.dumps({"do": do, "n": self.requests, "client": "page", **more}))
        self.take(self.handle(request))
        return self

    def take(self, answer: Frame) -> None:
        """Take an answer through a channel that carries JSON in UTF-8."""
        sent = json.dumps(answer, allow_nan=False, ensure_ascii=False).encode("utf-8")
        self.bytes = len(sent)
        read = json.loads(sent)
        assert read["n"] == self.requests
        self.frames = read["frames"]
        assert self.frames, "an answer has at least one frame"
        for frame in self.frames:
            self._merge(frame)

    def _merge(self, frame: Frame) -> None:
        if frame.get("whole"):
            self.shown, self.values, self.panels = {}, {}, {}
        else:
            assert frame["f"] == self.shown["f"] + 1, "a frame is missing"
        self.shown.pop("stop", None)
        self.shown.update(frame)
        self.values.update(frame.get("values", {}))
        for name, fields in frame.get("panels", {}).items():
            self.panels[name] = PanelState(fields) if "marks" in fields else self.panels[name].changed(fields)
        self.panels = {name: self.panels[name] for name in self.shown["order"]}

    # What a learner sees ----------------------------------------------------------------------------------------------

    def snapshot(self) -> Frame:
        """Return everything on the page, without the frame's number."""
        panels = {name: vars(panel) for name, panel in self.panels.items()}
        fields = {
            key: value for key, value in self.shown.items() if key not in ("f", "whole", "panels", "values", "stop")
        }
        return {**fields, "values": dict(self.values), "panels": panels}

    @property
    def state(self) -> str:
        return str(self.shown["state"])

    @property
    def note(self) -> str:
        return str(self.shown["note"])

    @property
    def alarm(self) -> str:
        return str(self.shown["alarm"])

    @property
    def stopped(self) -> bool:
        """Whether the newest frame stops playing."""
        return bool(self.frames[-1].get("stop"))

    def code(self) -> str:
        """Return the text of the code pane, from its coloured lines."""
        plain = [html.unescape(re.sub(r"<[^>]*>", "", line)) for line in self.shown["code"]["html"]]
        return "".join(f"{line}\n" for line in plain)

    def control(self, name: str) -> dict[str, Any]:
        return next(control for control in self.shown["controls"] if control["name"] == name)

    def names(self) -> list[str]:
        return [control["name"] for control in self.shown["controls"]]

    # What a learner does ----------------------------------------------------------------------------------------------

    def turn(self, name: str, value: Any) -> Page:
        """Set a control to a value as chosen or typed."""
        return self.ask("turn", name=name, value=value)

    def play(self, frames: int = 1, updates: int = 1) -> Page:
        """Play ``frames`` frames of ``updates`` updates, with several requests if an answer holds fewer frames."""
        left = frames
        while left > 0:
            self.ask("frames", count=left, every=1000 / 60, updates=updates)
            left -= len(self.frames)
            if self.stopped:
                break
        return self

    def press(self, name: str, label: str) -> Page:
        """Press the mark of a panel with this label."""
        labels = [mark["press"] for mark in self.panels[name].marks if "press" in mark]
        assert label in labels, labels
        return self.ask("press", what=label)
