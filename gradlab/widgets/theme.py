"""The Lab's style sheet: follows the light or dark theme of JupyterLab, Notebook, VS Code and Colab by CSS alone.

Panels are drawn dark on white. In a dark theme they are turned over in the browser: inverting every colour and turning
the hue back by half a circle swaps light for dark and leaves blue blue. The kernel need not know the theme.
"""

from __future__ import annotations

_DARK = ("body[data-jp-theme-light='false']", "body.vscode-dark", "html[theme='dark']")
_INK = "var(--jp-content-font-color1, var(--vscode-foreground, currentColor))"
_FAINT = "var(--jp-content-font-color2, var(--vscode-descriptionForeground, #5f6368))"
_LINE = "var(--jp-border-color2, rgba(128, 128, 128, .4))"
_MONO = "var(--jp-code-font-family, ui-monospace, Menlo, Consolas, monospace)"


def style_sheet() -> str:
    """Return the ``<style>`` element."""
    dark_images = ", ".join(f"{theme} .gradlab img" for theme in _DARK)
    return f"""<style>
.gradlab {{ container-type: inline-size; color: {_INK}; max-width: 1500px; overflow: visible; }}
.gradlab img {{ width: 100%; max-width: 560px; height: auto; margin: 0; border-radius: 4px; object-fit: contain; }}
{dark_images} {{ filter: invert(0.93) hue-rotate(180deg); }}
.gradlab-bar {{ display: flex; flex-flow: row wrap; align-items: center; gap: 2px 12px; overflow: visible; }}
.gradlab-bar .widget-checkbox, .gradlab-bar .widget-checkbox label {{ width: auto; margin: 0; }}
.gradlab-bar .widget-inline-hbox .widget-label {{ width: auto; min-width: 0; }}
.gradlab-body {{ display: flex; flex-flow: row wrap; align-items: flex-start; overflow: visible; gap: 8px; }}
.gradlab-code {{ flex: 1 1 395px; min-width: min(330px, 100%); max-width: 100%; overflow: visible; }}
.gradlab-panels {{ display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 4px 6px; flex: 3 1 510px;
  min-width: min(300px, 100%); max-width: 1130px; overflow: visible; align-content: start; }}
.gradlab-code .widget-html, .gradlab-code .widget-html-content {{ width: 100%; min-width: 0; overflow: visible; margin: 0; }}
.gradlab pre.gl {{ font: 12px/1.5 {_MONO}; margin: 0; padding: 4px 0; background: transparent; color: inherit;
  border: 1px solid {_LINE}; border-radius: 4px; }}
.gradlab pre.gl .line {{ display: block; position: relative; box-sizing: border-box; padding: 0 6px 0 3.9em; min-height: 1.5em;
  white-space: pre-wrap; overflow-wrap: break-word; border-left: 4px solid transparent; }}
.gradlab pre.gl .gutter {{ position: absolute; left: 0; width: 3.3em; color: {_FAINT}; user-select: none; text-align: right; }}
.gradlab pre.gl .lit {{ background: rgba(86, 180, 233, .30); border-left-color: #0072B2; font-weight: 600; }}
.gradlab pre.gl .changed {{ background: rgba(230, 159, 0, .20); }}
.gradlab pre.gl .changed.lit {{ background: linear-gradient(90deg, rgba(86, 180, 233, .40), rgba(230, 159, 0, .25)); }}
.gradlab pre.gl .wrong {{ background: rgba(213, 94, 0, .25); text-decoration: underline wavy #D55E00; }}
.gradlab pre.gl .k, .gradlab pre.gl .ow, .gradlab pre.gl .kc {{ color: var(--jp-mirror-editor-keyword-color, #0a7d33); }}
.gradlab pre.gl .c1 {{ color: {_FAINT}; font-style: italic; }}
.gradlab pre.gl .mf, .gradlab pre.gl .mi {{ color: var(--jp-mirror-editor-number-color, inherit); }}
.gradlab pre.gl .s1, .gradlab pre.gl .s2 {{ color: var(--jp-mirror-editor-string-color, inherit); }}
.gradlab .gl-words {{ font-size: 14px; line-height: 1.45; padding: 2px 0; overflow-wrap: anywhere; }}
.gradlab .gl-note {{ color: {_FAINT}; }}
.gradlab .gl-chip {{ display: inline-block; border: 2px solid #D55E00; border-radius: 10px; padding: 0 8px; font-weight: 600;
  background: repeating-linear-gradient(135deg, rgba(213, 94, 0, .16) 0 6px, transparent 6px 12px); }}
@container (min-width: 1250px) {{ .gradlab pre.gl {{ font-size: 14px; }} .gradlab .gl-words {{ font-size: 16px; }} }}
@container (max-width: 480px) {{ .gradlab-panels {{ grid-template-columns: minmax(0, 1fr); }} .gradlab pre.gl {{ font-size: 11px; tab-size: 2; }} .gradlab pre.gl .line {{ padding-left: 3.2em; }}
  .gradlab pre.gl .gutter {{ width: 2.7em; }} }}
.gradlab textarea {{ font: 12.5px/1.45 {_MONO}; }}
</style>"""
