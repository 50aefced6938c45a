// @ts-check
/** Painting of a panel's marks on a canvas at the screen's density. */

import { boxOf } from "./marks.js";
import { colourOf } from "./palette.js";
import { pointsOf, remembered } from "./wire.js";

/** @import { Mark, PanelState } from "./wire.js" */
/** @import { Theme } from "./palette.js" */
/** @typedef {CanvasRenderingContext2D} Context */

const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
/** @type {Record<string, number[]>} lengths of strokes and gaps in widths of the line, as in matplotlib */
const DASHES = { dashed: [3.7, 1.6], dotted: [1, 1.65], dashdot: [6.4, 1.6, 1, 1.6] };
const FAINT = 0.4; // opacity of a panel that is out of date
const GLOW = 5; // CSS pixels around lit marks
const TILE = 8; // CSS pixels after which a hatch repeats

/**
 * Paint a panel; `scale` is the number of canvas pixels for each CSS pixel.
 * @param {Context} context @param {PanelState} panel @param {Theme} theme @param {number} scale
 * @param {(id: string, mark: Mark) => number} [strength] of a mark: its opacity from 0 to 1, or more than 1 to glow
 */
export function paint(context, panel, theme, scale, strength = () => 1) {
  const [width, height] = panel.size;
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.clearRect(0, 0, width, height);
  context.fillStyle = colourOf("paper", theme);
  context.fillRect(0, 0, width, height);
  context.lineJoin = "round";
  context.shadowColor = colourOf("ink", theme);
  panel.marks.forEach((mark, index) => {
    const strong = strength(panel.ids[index], mark);
    context.globalAlpha = (mark.alpha ?? 1) * Math.min(strong, 1) * (panel.faint ? FAINT : 1);
    if (mark.clip) {
      const [left, top, right, bottom] = mark.clip;
      context.save();
      context.beginPath();
      context.rect(left - 1, top - 1, right - left + 2, bottom - top + 2);
      context.clip();
    }
    for (const glow of strong > 1 ? [GLOW * scale, 0] : [0]) { // the glow first, then the mark on it
      context.shadowBlur = glow;
      if (mark.k === "t") paintText(context, mark, theme);
      else if (mark.k === "i") paintImage(context, mark, theme);
      else paintOutline(context, mark, theme, scale);
    }
    if (mark.clip) context.restore();
  });
  context.globalAlpha = 1;
}

/** Paint a path or dots. @param {Context} context @param {Mark} mark @param {Theme} theme @param {number} scale */
function paintOutline(context, mark, theme, scale) {
  const { fill, hatch, stroke } = mark;
  if (!fill && !hatch && !stroke) return;
  const path = outlineOf(mark);
  if (fill) {
    context.fillStyle = colourOf(fill, theme);
    context.fill(path);
  }
  if (hatch) {
    context.fillStyle = hatching(context, hatch, colourOf(stroke || "ink", theme), scale);
    context.fill(path);
  }
  if (!stroke) return;
  const width = mark.width ?? 1;
  context.strokeStyle = colourOf(stroke, theme);
  context.lineWidth = width;
  const dash = mark.dash && DASHES[mark.dash];
  if (dash) context.setLineDash(dash.map((part) => part * width));
  context.stroke(path);
  if (dash) context.setLineDash([]);
}

/** @type {WeakMap<Mark, Path2D>} */
const knownOutlines = new WeakMap();

/** Return the path to fill and stroke for a mark. @param {Mark} mark */
function outlineOf(mark) {
  return remembered(knownOutlines, mark, () => mark.k === "d" ? dotsOutline(mark) : pathOutline(mark));
}

/** @param {Mark} mark */
function pathOutline(mark) {
  const [path, points] = [new Path2D(), pointsOf(mark)];
  const closed = mark.closed || mark.fill || mark.hatch;
  let down = false;
  for (let index = 0; index < points.length; index += 2) {
    const [x, y] = [points[index], points[index + 1]];
    if (Number.isNaN(x + y)) {
      if (closed && down) path.closePath();
      down = false;
    } else if (down) path.lineTo(x, y);
    else {
      path.moveTo(x, y);
      down = true;
    }
  }
  if (closed && down) path.closePath();
  return path;
}

/** @type {Record<string, string>} outlines of shapes from -1 to 1 */
const SHAPES = {
  circle: "M1 0 A1 1 0 0 1 -1 0 A1 1 0 0 1 1 0 Z",
  diamond: "M0 -1.2 L1.2 0 L0 1.2 L-1.2 0 Z",
  triangle: "M0 -1 L1 0.9 L-1 0.9 Z",
  down: "M0 1 L-1 -0.9 L1 -0.9 Z",
  cross: "M-0.8 -0.8 L0.8 0.8 M-0.8 0.8 L0.8 -0.8",
  plus: "M-1 0 H1 M0 -1 V1",
};

/** @param {Mark} mark */
function dotsOutline(mark) {
  const [path, points, half] = [new Path2D(), pointsOf(mark), (mark.size ?? 6) / 2];
  const shape = new Path2D(SHAPES[mark.shape ?? ""] ?? SHAPES.circle);
  for (let index = 0; index < points.length; index += 2) {
    const [x, y] = [points[index], points[index + 1]];
    if (!Number.isNaN(x)) path.addPath(shape, { a: half, d: half, e: x, f: y });
  }
  return path;
}

/** @type {Record<string, string>} lines on a tile, and beyond it, so that its corners are filled */
const HATCHES = {
  "//": "M-1 9 L9 -1 M-9 9 L9 -9 M-1 17 L17 -1",
  "\\\\": "M-1 -1 L9 9 M-9 -1 L9 17 M-1 -9 L17 9",
  "--": "M0 4 H8",
  "..": "M2 2 h0 M6 6 h0",
};

/** @type {Map<string, CanvasPattern | string>} by style, colour and scale */
const hatches = new Map();

/** @param {Context} context @param {string} hatch @param {string} colour @param {number} scale */
function hatching(context, hatch, colour, scale) {
  return remembered(hatches, `${hatch} ${colour} ${scale}`, () => {
    const side = Math.max(1, Math.round(TILE * scale));
    const pattern = context.createPattern(hatchTile(hatch, colour, side), "repeat");
    pattern?.setTransform(new DOMMatrix().scale(TILE / side));
    return pattern ?? colour;
  });
}

/** @param {string} hatch @param {string} colour @param {number} side in canvas pixels */
function hatchTile(hatch, colour, side) {
  const tile = blankCanvas(side, side);
  const pen = /** @type {Context} */ (tile.getContext("2d"));
  pen.scale(side / TILE, side / TILE);
  pen.strokeStyle = colour;
  pen.lineWidth = hatch === ".." ? 2.2 : 1.2;
  pen.lineCap = "round";
  pen.stroke(new Path2D(HATCHES[hatch]));
  return tile;
}

/** @param {Context} context @param {Mark} mark @param {Theme} theme */
function paintText(context, mark, theme) {
  const { x = 0, y = 0, text = "", role = "ink", size = 12, anchor = "start", angle = 0 } = mark;
  context.font = fontOf(mark);
  context.textAlign = anchor === "middle" ? "center" : anchor === "end" ? "right" : "left";
  if (angle) {
    context.save();
    context.translate(x, y);
    context.rotate((-angle * Math.PI) / 180);
    context.translate(-x, -y);
  }
  if (mark.backed) {
    const [left, top, right, bottom] = boxOf(mark);
    const alpha = context.globalAlpha;
    context.globalAlpha = 0.85 * alpha;
    context.fillStyle = colourOf("paper", theme);
    context.fillRect(left - 2, top, right - left + 4, bottom - top);
    context.globalAlpha = alpha;
  }
  context.fillStyle = colourOf(role, theme);
  context.fillText(text, x, y + 0.35 * size); // half the height of a capital letter
  if (angle) context.restore();
}

/** @param {Mark} mark */
function fontOf(mark) {
  return `${mark.bold ? "bold " : ""}${mark.size ?? 12}px ${FONT}`;
}

/** @type {Map<string, number>} */
const widths = new Map();

/** Return the width of a text in CSS pixels. @param {string} text @param {number} size @param {boolean} bold */
export function measureText(text, size, bold) {
  return remembered(widths, `${size} ${bold} ${text}`, () => {
    pen ??= /** @type {Context} */ (blankCanvas(1, 1).getContext("2d"));
    pen.font = fontOf(/** @type {Mark} */ ({ k: "t", size, bold }));
    return pen.measureText(text).width;
  });
}

/** @type {Context | undefined} */
let pen;

/** Clear the cache of text widths, because another font has been loaded. */
export function forgetWidths() {
  widths.clear();
}

/** @type {WeakMap<Mark, Map<Theme, HTMLCanvasElement>>} */
const knownCells = new WeakMap();

/** @param {Context} context @param {Mark} mark @param {Theme} theme */
function paintImage(context, mark, theme) {
  const cells = remembered(remembered(knownCells, mark, () => new Map()), theme, () => cellCanvas(mark, theme));
  const { x = 0, y = 0, width = 0, height = 0 } = mark;
  context.imageSmoothingEnabled = false;
  context.drawImage(cells, x, y, width, height);
}

/** Return a canvas with a pixel for each cell. @param {Mark} mark @param {Theme} theme */
function cellCanvas(mark, theme) {
  const { cells = "", columns = 1, palette = [] } = mark;
  const canvas = blankCanvas(columns, Math.max(1, Math.ceil(cells.length / columns)));
  const pen = /** @type {Context} */ (canvas.getContext("2d"));
  const pixels = pen.createImageData(canvas.width, canvas.height);
  const words = new Uint32Array(pixels.data.buffer); // alpha, blue, green, red from the highest byte down
  const inks = palette.map((role) => {
    const colour = parseInt(colourOf(role, theme).slice(1), 16);
    return (0xff000000 | ((colour & 0xff) << 16) | (colour & 0xff00) | (colour >> 16)) >>> 0;
  });
  for (let index = 0; index < cells.length; index++) words[index] = inks[cells.charCodeAt(index) - 48];
  pen.putImageData(pixels, 0, 0);
  return canvas;
}

/** @param {number} width @param {number} height */
function blankCanvas(width, height) {
  const canvas = document.createElement("canvas");
  canvas.width = width;
  canvas.height = height;
  return canvas;
}
