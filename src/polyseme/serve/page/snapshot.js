// A part of the page as an SVG picture: its texts, backgrounds and borders, where they are on the screen.

import {color, svg} from "./dom.js";

const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});

// A colour as every program knows it: a browser may give color(srgb …).
function plain(given) {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = given;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
  return alpha === 0 ? "none" : `rgb(${red},${green},${blue})`;
}

// Words of a text node with where they are; a word that is broken over lines comes letter by letter.
function* pieces(node) {
  const range = document.createRange();
  const rects = (begin, end) => {
    range.setStart(node, begin);
    range.setEnd(node, end);
    return [...range.getClientRects()].filter(({width}) => width > 0);
  };
  for (const match of node.data.matchAll(/\S+/gu)) {
    const found = rects(match.index, match.index + match[0].length);
    if (found.length === 1) yield {said: match[0], rect: found[0]};
    else {
      let at = match.index;
      for (const letter of match[0]) {
        const [rect] = rects(at, at + letter.length);
        if (rect) yield {said: letter, rect};
        at += letter.length;
      }
    }
  }
}

function texts(node, x0, y0) {
  const style = getComputedStyle(node.parentElement);
  pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const {fontBoundingBoxAscent: above, fontBoundingBoxDescent: below} = pen.measureText("x");
  return [...pieces(node)].map(({said, rect}) => svg("text", {x: (rect.left - x0).toFixed(1),
    y: (rect.top - y0 + rect.height * above / (above + below)).toFixed(1), fill: plain(style.color), "font-size": style.fontSize,
    "font-weight": style.fontWeight, "font-family": style.fontFamily}, said));
}

function box(element, x0, y0) {
  const style = getComputedStyle(element), fill = plain(style.backgroundColor), parts = [];
  const all = parseFloat(style.borderLeftWidth), bottom = parseFloat(style.borderBottomWidth);
  for (const {left, top, width, height} of element.getClientRects()) {
    const place = {x: left - x0, y: top - y0, width, height, rx: parseFloat(style.borderTopLeftRadius) || 0};
    if (fill !== "none" || all > 0) parts.push(svg("rect", {...place, fill, ...(all > 0 ? {stroke: plain(style.borderLeftColor), "stroke-width": all} : {})}));
    if (all === 0 && bottom > 0) parts.push(svg("rect", {x: place.x, y: place.y + height - bottom, width, height: bottom, fill: plain(style.borderBottomColor)}));
    const part = parseFloat(element.style.getPropertyValue("--part")); // a bar, in percent
    if (part > 0) parts.push(svg("rect", {x: place.x, y: place.y + height - 2, width: width * part / 100, height: 3, rx: 1.5, fill: color("accent"), "fill-opacity": 0.55}));
  }
  return parts;
}

export function snapshot(element) {
  const {left, top, width, height} = element.getBoundingClientRect(), margin = 12, parts = [];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) parts.push(texts(node, left - margin, top - margin));
    if (node.nodeType !== Node.ELEMENT_NODE || node.matches("button")) return;
    parts.push(box(node, left - margin, top - margin));
    node.childNodes.forEach(walk);
  };
  walk(element);
  const size = {width: Math.ceil(width + 2 * margin), height: Math.ceil(height + 2 * margin)};
  return svg("svg", {viewBox: `0 0 ${size.width} ${size.height}`, ...size}, svg("rect", {...size, fill: color("paper")}), parts);
}
