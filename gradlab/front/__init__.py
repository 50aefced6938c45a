"""The browser's part of labs and questions: JavaScript modules, and the widget that sends them to the browser."""

from typing import TYPE_CHECKING

from .._lazy import load_lazily

if TYPE_CHECKING:
    from .joined import bet_module as bet_module
    from .joined import bet_script as bet_script
    from .joined import bet_style as bet_style
    from .joined import joined_module as joined_module
    from .joined import page_script as page_script
    from .joined import page_style as page_style
    from .joined import player_module as player_module
    from .joined import style_sheet as style_sheet
    from .widget import FrontEnd as FrontEnd
    from .widget import cell_number as cell_number
    from .widget import on_interrupt as on_interrupt

load_lazily(__name__, needs_torch=False)
