// Surprise as colour, and the strip of a sentence as a picture for export.

import {color, svg} from "../dom.js";
import {number, t} from "../strings.js";

const MOST = 16; // bits; one word in 65,536

// How strongly a cell is coloured, from 0 % to 100 %.
export function shade(bits) {
  return bits === null ? "0%" : `${Math.round(100 * Math.min(Math.max(bits / MOST, 0), 1))}%`;
}

const wide = (text) => [...text].reduce((sum, letter) => sum + (letter.charCodeAt(0) > 0x2e80 ? 18 : 9.5), 0);

export function strip(found, sides) {
  const widths = found.words.map((word) => Math.max(wide(word) + 16, 46));
  const label = Math.max(...sides.map((side) => wide(t(`sentence.${side}`)))) * 0.8 + 12;
  const width = label + widths.reduce((sum, each) => sum + each, 0) + 16, height = 44 + sides.length * 30 + 10;
  const font = "Georgia, 'Noto Serif CJK SC', 'Songti SC', serif";
  const parts = [svg("rect", {width, height, fill: color("paper")})];
  sides.forEach((side, row) => parts.push(svg("text", {x: 8, y: 44 + row * 30 + 19, "font-size": 12, fill: color("faint"),
    "font-family": "sans-serif"}, t(`sentence.${side}`))));
  let x = label;
  found.words.forEach((word, at) => {
    parts.push(svg("text", {x: x + widths[at] / 2, y: 30, "font-size": 18, "text-anchor": "middle", fill: color("ink"), "font-family": font}, word));
    sides.forEach((side, row) => {
      const bits = found[side][at], y = 44 + row * 30;
      parts.push(svg("rect", {x: x + 2, y, width: widths[at] - 4, height: 26, rx: 4, fill: color("accent"),
        "fill-opacity": bits === null ? 0 : 0.06 + 0.54 * Math.min(bits / MOST, 1)}));
      parts.push(svg("text", {x: x + widths[at] / 2, y: y + 18, "font-size": 12, "text-anchor": "middle", fill: color("ink"),
        "font-family": "sans-serif"}, bits === null ? "–" : number(bits, 1)));
    });
    x += widths[at];
  });
  return svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height}, parts);
}
