"""A page without a browser: asks a lab what a learner asks, and keeps what the frames tell.

It reads the protocol (``gradlab/front/README.md``) on its own, with nothing of ``gradlab.drawing.wire``: it shows what
any other reader of the same messages would show.
"""

from __future__ import annotations

import html
import json
import re
from typing import Any

Frame = dict[str, Any]
Pairs = list[tuple[float, ...]]
_POINT = {"b": 3}  # numbers a point: a band has triples, all other marks pairs


class PanelSeen:
    """One panel as the frames have told it."""

    def __init__(self, told: Frame) -> None:
        self.head = {name: value for name, value in told.items() if name not in ("ids", "marks") and value is not None}
        self.title, self.words = told["title"], told.get("words", "")
        self.ids: list[str] = told["ids"]
        self.marks: list[dict[str, Any]] = told["marks"]
        assert len(self.ids) == len(self.marks)
        assert len(set(self.ids)) == len(self.ids), "an id names one mark"

    def changed(self, change: Frame) -> PanelSeen:
        """The panel after a change."""
        by_id = dict(zip(self.ids, self.marks, strict=True))
        whole = {**self.head, "ids": self.ids, "marks": [by_id.get(id, {}) for id in change.get("ids", self.ids)]}
        for index, fields in change.get("set", []):
            if "k" in fields:  # a mark that is new
                whole["marks"][index] = fields
                continue
            mark = {**whole["marks"][index], **fields}
            if "p" in fields:
                kept, *tail = fields["p"]
                mark["p"] = whole["marks"][index].get("p", [])[:kept] + tail
            whole["marks"][index] = {name: value for name, value in mark.items() if value is not None}
        return PanelSeen({**whole, **{key: value for key, value in change.items() if key != "set"}})

    def mark(self, id: str) -> dict[str, Any]:
        """The mark of this id."""
        return self.marks[self.ids.index(id)]

    def texts(self) -> list[str]:
        """What is written in it, each text in its longest form."""
        around = [*self.head.get("corner", [])[:1], *(note[0] for note in self.head.get("notes", []))]
        written = [mark["texts"][0] for mark in self.marks if mark["k"] == "t"]
        return [self.title, *around, *filter(None, [self.head.get("notice")]), *written]

    def all_words(self) -> str:
        """All that it says: its own words, what is written in it, and the words of its marks."""
        told = [mark.get("words", "") for mark in self.marks]
        return "\n".join(part for part in (self.words, *self.texts(), *told) if part)

    def points(self, id: str) -> Pairs:
        """The points of a mark, those left out where the pen is lifted."""
        mark = self.mark(id)
        each, numbers = _POINT.get(mark["k"], 2), mark.get("p", [])
        assert len(numbers) % each == 0, "whole points"
        points = [tuple(numbers[at : at + each]) for at in range(0, len(numbers), each)]
        return [point for point in points if None not in point]

    def draggable(self, name: str) -> str:
        """The id of the mark that can be dragged, of this name."""
        return next(id for id, mark in zip(self.ids, self.marks, strict=True) if mark.get("drag") == name)


class Page:
    """What a page knows of a lab: all frames so far, put together."""

    def __init__(self, lab: Any) -> None:
        self.handle = lab.handle
        self.shown: Frame = {}
        self.values: dict[str, Any] = {}
        self.panels: dict[str, PanelSeen] = {}
        self.frames: list[Frame] = []
        """Those of the newest answer."""
        self.bytes = 0
        """Length of the newest answer."""
        self.asked = 0
        self.ask("hello")

    def ask(self, do: Any, **more: Any) -> Page:
        """Ask, and take the answer."""
        self.asked += 1
        request = json.loads(json.dumps({"do": do, "n": self.asked, "client": "page", **more}))
        self.take(self.handle(request))
        return self

    def take(self, answer: Frame) -> None:
        """Take an answer as it comes through a channel that carries JSON in UTF-8."""
        sent = json.dumps(answer, allow_nan=False, ensure_ascii=False).encode("utf-8")
        self.bytes = len(sent)
        read = json.loads(sent)
        assert read["n"] == self.asked
        self.frames = read["frames"]
        assert self.frames, "an answer holds a frame at least"
        for frame in self.frames:
            self._merge(frame)

    def _merge(self, frame: Frame) -> None:
        if frame.get("whole"):
            self.shown, self.values, self.panels = {}, {}, {}
        else:
            assert frame["f"] == self.shown["f"] + 1, "no frame is missed"
        self.shown.pop("stop", None)
        self.shown.update(frame)
        self.values.update(frame.get("values", {}))
        for name, told in frame.get("panels", {}).items():
            self.panels[name] = PanelSeen(told) if "marks" in told else self.panels[name].changed(told)
        self.panels = {name: self.panels[name] for name in self.shown["order"]}

    # What a learner sees ----------------------------------------------------------------------------------------------

    def seen(self) -> Frame:
        """All that is shown, without the number of the frame."""
        panels = {name: vars(panel) for name, panel in self.panels.items()}
        rest = {
            key: value for key, value in self.shown.items() if key not in ("f", "whole", "panels", "values", "stop")
        }
        return {**rest, "values": dict(self.values), "panels": panels}

    @property
    def state(self) -> str:
        """The status line."""
        return str(self.shown["state"])

    @property
    def note(self) -> str:
        """What the lab has to say."""
        return str(self.shown["note"])

    @property
    def alarm(self) -> str:
        """What is wrong."""
        return str(self.shown["alarm"])

    @property
    def stopped(self) -> bool:
        """Whether the newest frame ends the playing."""
        return bool(self.frames[-1].get("stop"))

    def code(self) -> str:
        """The text in the code pane, read from its coloured lines."""
        plain = [html.unescape(re.sub(r"<[^>]*>", "", line)) for line in self.shown["code"]["html"]]
        return "".join(f"{line}\n" for line in plain)

    def control(self, name: str) -> dict[str, Any]:
        """What describes a control."""
        return next(control for control in self.shown["controls"] if control["name"] == name)

    def names(self) -> list[str]:
        """The names of the controls, in their order."""
        return [control["name"] for control in self.shown["controls"]]

    # What a learner does ----------------------------------------------------------------------------------------------

    def turn(self, name: str, value: Any) -> Page:
        """Turn a switch as it was chosen or typed."""
        return self.ask("turn", name=name, value=value)

    def play(self, frames: int = 1, updates: int = 1) -> Page:
        """Play so many frames of so many updates; several requests are made if one answer holds fewer."""
        left = frames
        while left > 0:
            self.ask("frames", count=left, every=1000 / 60, updates=updates)
            left -= len(self.frames)
            if self.stopped:
                break
        return self

    def press(self, name: str, words: str) -> Page:
        """Press the mark of a panel that tells this."""
        told = [mark["press"] for mark in self.panels[name].marks if "press" in mark]
        assert words in told, told
        return self.ask("press", what=words)
