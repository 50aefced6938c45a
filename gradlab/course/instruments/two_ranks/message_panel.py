"""The picture of what two ranks do, statement by statement, and of what passes between them."""

from __future__ import annotations

from collections.abc import Sequence

from ....drawing import Dots, Drag, Drawing, PanelBuilder, Path, Side, Spot, make_axes, make_box, text_width
from .loop import MOMENTS, LoopSettings
from .moments import Moment


def draw_messages(moments: Sequence[Moment], now: Moment, settings: LoopSettings, width: int, height: int) -> Drawing:
    """Draw what each rank does, statement by statement, and what passes between them; a line marks this moment."""
    panel = PanelBuilder("messages", width, height)
    panel.corner(count_text(now), short_count(now))
    side = Side(0.0, MOMENTS + 1.0, words="statements", ticks="updates")
    rows = Side(0.0, 1.0, ticks="none")
    axes = make_axes((width, height), 58.0, 68.0, width - 12.0, height - 42.0, side, rows)
    panel.axes(axes)
    tall = axes.bottom - axes.top
    rank_y = (axes.top + 0.18 * tall, axes.top + 0.74 * tall)
    half = min(7.0, 0.42 * (axes.x.at(1.0) - axes.x.at(0.0)))
    for number, y in enumerate(rank_y):
        panel.label(f"rank {number}", [Spot(f"rank {number}", axes.left - 6, y, "end")])
    _add_key(panel, settings)
    x = axes.x.at(now.number)
    panel.add(make_box("now", x - half - 3, axes.top, x + half + 3, axes.bottom, fill="faint", words="this moment"))
    panel.add(Dots("now mark", (x, axes.top - 3), shape="down", size=11.0, fill="ink", words="this moment"))
    for moment in moments[1:]:
        x = axes.x.at(moment.number)
        _add_statement(panel, moment, settings, x, rank_y, half, later=moment.number > now.number)
        if moment.statement == "step" and moment.number < MOMENTS:
            edge = axes.x.at(moment.number + 0.5)
            panel.add(Path(f"end {moment.update}", (edge, axes.top, edge, axes.bottom), stroke="faint", width=1.0))
    drag = Drag("moment", axes.x.axis, axes.y.axis)
    panel.add(make_box("moment", axes.left, axes.top - 10, axes.right, axes.bottom, drag=drag))
    return panel.finish(f"{count_text(now)} so far. {_end_words(moments[-1])}")


def count_text(moment: Moment) -> str:
    """Say how many all-reduces there were and how many bytes each rank handed in."""
    count, size = len(moment.messages), sum(message.bytes for message in moment.messages)
    return f"{count} all-reduce{'s' * (count != 1)}, {size} bytes from each rank"


def short_count(moment: Moment) -> str:
    """Say the same in few words."""
    return f"{len(moment.messages)}, {sum(message.bytes for message in moment.messages)} B"


def _add_statement(
    panel: PanelBuilder,
    moment: Moment,
    settings: LoopSettings,
    x: float,
    rank_y: tuple[float, float],
    half: float,
    later: bool,
) -> None:
    """Draw one statement of both ranks; what is still to come is pale."""
    pale = "/35" if later else ""
    name, told = moment.number, f"update {moment.update}"
    if moment.statement == "all-reduce":
        top, bottom = rank_y[0] + 13, rank_y[1] - 13
        if moment.quiet:
            words = f"{told}, micro-batch {moment.micro}: inside no_sync(), nothing is sent"
            panel.add(Path(f"{name}", (x, top, x, bottom), stroke="grey" + pale, width=1.2, dash="dotted", words=words))
            return
        size = sum(message.bytes for message in moment.messages if message.moment == name)
        words = f"{told}, micro-batch {moment.micro}: all-reduce, {size} bytes from each rank"
        look = {"fill": "gradients" + pale, "hatch": "//", "stroke": "ink" + pale, "width": 1.0}
        panel.add(make_box(f"{name}", x - half * 0.6, top, x + half * 0.6, bottom, words=words, **look))
        panel.label(f"size {name}", [Spot(f"{size} B", x, rank_y[1] + 20, "middle")], size=11.0, role="grey")
        return
    for rank, y in enumerate(rank_y):
        words = f"{told}, rank {rank}: {moment.statement}"
        if moment.statement == "backward":
            look = {"fill": "fresh" + pale, "stroke": "ink" + pale, "width": 1.0}
            panel.add(make_box(f"{name} {rank}", x - half, y - half, x + half, y + half, words=words, **look))
        elif moment.statement == "step":
            at = (x, y)
            fill = "optimizer" + pale
            panel.add(Dots(f"{name} {rank}", at, shape="diamond", size=1.6 * half, fill=fill, words=words))
        elif settings.clears(rank):
            at = (x, y)
            panel.add(
                Dots(f"{name} {rank}", at, shape="ring", size=1.6 * half, stroke="grey" + pale, width=1.6, words=words)
            )
        else:
            said = f"{told}, rank {rank}: zero_grad is forgotten"
            panel.add(
                Dots(
                    f"{name} {rank}", (x, y), shape="cross", size=2 * half, stroke="wrong" + pale, width=2.2, words=said
                )
            )


def _add_key(panel: PanelBuilder, settings: LoopSettings) -> None:
    keys = ["zero_grad", "backward", "all-reduce", "step", *(["forgotten"] if settings.forgets != "none" else [])]
    x, y = 8.0, 38.0
    for name in keys:
        wide = 16.0 + text_width(name)
        if x + wide > panel.width:
            x, y = 8.0, y + 16.0
        mark, middle = f"key {name}", x + 6.0
        if name == "zero_grad":
            panel.add(Dots(mark, (middle, y), shape="ring", size=10.0, stroke="grey", width=1.6))
        elif name == "backward":
            panel.add(make_box(mark, x, y - 6, x + 12, y + 6, fill="fresh", stroke="ink", width=1.0))
        elif name == "all-reduce":
            look = {"fill": "gradients", "hatch": "//", "stroke": "ink", "width": 1.0}
            panel.add(make_box(mark, x + 2, y - 6, x + 10, y + 6, **look))
        elif name == "step":
            panel.add(Dots(mark, (middle, y), shape="diamond", size=12.0, fill="optimizer"))
        else:
            panel.add(Dots(mark, (middle, y), shape="cross", size=11.0, stroke="wrong", width=2.2))
        panel.label(f"{mark} word", [Spot(name, x + 16.0, y)])
        x += wide + 7.0


def _end_words(last: Moment) -> str:
    return f"After {last.update} updates it will be {count_text(last)}."
