// Curves as SVG. The picture holds all it needs, so that it can be saved as it is.

import {color, svg} from "./dom.js";
import {number} from "./strings.js";

function ticks(low, high, count = 4, least = 0) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw || 1));
  const step = Math.max([1, 2, 5, 10].map((each) => each * power).find((each) => each >= raw) ?? power, least);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * step; value += step) found.push(Math.abs(value) < 1e-9 * step ? 0 : value);
  return found;
}

const short = (value) => (Math.abs(value) >= 10000 ? `${number(value / 1000, 0)}k` : number(value, Math.abs(value) < 10 && value % 1 ? 2 : 0));

// The mark of a curve, a full or (`hollow`) an empty circle: there are more runs than colours that can be told apart.
export function mark(cx, cy, r, fill, hollow, inside = "none") {
  return svg("circle", hollow ? {cx, cy, r: r - r / 6, fill: inside, stroke: fill, "stroke-width": r / 3} : {cx, cy, r, fill});
}

// lines: [{name, shade, hollow, points: [[x, y], ...]}]
export function chart(title, unit, lines) {
  const width = Math.min(560, Math.max(innerWidth - 40, 320)), height = 300, box = {left: 62, right: 16, top: 40, bottom: 40};
  const all = lines.flatMap(({points}) => points), xs = all.map(([x]) => x), ys = all.map(([, y]) => y);
  const alone = xs.every((each) => each === xs[0]) ? 0.5 : 0; // then it is drawn in the middle
  const x0 = Math.min(...xs) - alone, x1 = Math.max(...xs) + alone, low = Math.min(...ys), high = Math.max(...ys);
  const margin = (high - low || Math.abs(high) || 1) * 0.06, y0 = low - margin, y1 = high + margin;
  const x = (value) => box.left + (value - x0) / (x1 - x0) * (width - box.left - box.right);
  const y = (value) => height - box.bottom - (value - y0) / (y1 - y0) * (height - box.top - box.bottom);
  const text = (at, down, said, more) => svg("text", {x: at, y: down, "font-size": 12, fill: color("faint"), "font-family": "sans-serif", ...more}, said);
  const parts = [svg("rect", {width, height, fill: color("card")}), text(box.left, 22, title, {"font-size": 15, fill: color("ink"), "font-weight": 600})];
  ticks(y0, y1).forEach((value) => {
    parts.push(svg("line", {x1: box.left, x2: width - box.right, y1: y(value), y2: y(value), stroke: color("line")}));
    parts.push(text(box.left - 8, y(value) + 4, short(value), {"text-anchor": "end"}));
  });
  ticks(x0, x1, 5, 1).forEach((value) => parts.push(text(x(value), height - box.bottom + 18, short(value), {"text-anchor": "middle"})));
  parts.push(text(width - box.right, height - 6, unit, {"text-anchor": "end"}));
  lines.forEach(({points, shade, hollow, name}) => {
    parts.push(svg("polyline", {points: points.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join(" "), fill: "none",
      stroke: color(shade), "stroke-width": 2, "stroke-linejoin": "round", "stroke-dasharray": hollow && "7 4"}, svg("title", null, name)));
    if (points.length < 30) points.forEach(([at, value]) => parts.push(mark(x(at), y(value), hollow ? 4 : 3, color(shade), hollow, color("card"))));
  });
  return svg("svg", {viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": title}, parts);
}
