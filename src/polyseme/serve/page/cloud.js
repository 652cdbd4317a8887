// Points on a canvas: they glide between layers, can be panned, zoomed, pointed at and circled. Drawn once a frame at most.

import {color, h, svg} from "./dom.js";

const MANY = 1500; // points
const LABEL = "600 15px system-ui, sans-serif";
const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "hexagon", "pentagon", "bar"];
const SIDES = {square: [4, Math.PI / 4], triangle: [3, -Math.PI / 2], diamond: [4, 0], hexagon: [6, 0], pentagon: [5, -Math.PI / 2]};

// Corners of a shape around a point; null: a circle.
function corners(group, radius) {
  const shape = SHAPES[group % SHAPES.length], r = radius * 1.2;
  if (shape === "circle") return null;
  if (shape === "bar") return [[-r, -r / 2], [r, -r / 2], [r, r / 2], [-r, r / 2]];
  if (shape === "cross") {
    const a = r / 2.6;
    return [[-a, -r], [a, -r], [a, -a], [r, -a], [r, a], [a, a], [a, r], [-a, r], [-a, a], [-r, a], [-r, -a], [-a, -a]];
  }
  const [sides, turn] = SIDES[shape];
  return Array.from({length: sides}, (_, side) => {
    const angle = turn + 2 * Math.PI * side / sides;
    return [r * 1.15 * Math.cos(angle), r * 1.15 * Math.sin(angle)];
  });
}

export function groupColor(group) {
  return color(`c${group % 8}`);
}

// A sign for a legend.
export function sign(group) {
  return svg("svg", {viewBox: "-9 -9 18 18", width: 18, height: 18, "aria-hidden": "true", class: "sign"}, mark(group, 0, 0, 6));
}

function mark(group, x, y, radius) {
  const points = corners(group, radius), fill = groupColor(group);
  if (!points) return svg("circle", {cx: x, cy: y, r: radius, fill});
  return svg("polygon", {points: points.map(([dx, dy]) => `${(x + dx).toFixed(2)},${(y + dy).toFixed(2)}`).join(" "), fill});
}

function inside(x, y, polygon) {
  let found = false;
  for (let at = 0, before = polygon.length - 1; at < polygon.length; before = at, at += 1) {
    const [x1, y1] = polygon[at], [x2, y2] = polygon[before];
    if (y1 > y !== y2 > y && x < (x2 - x1) * (y - y1) / (y2 - y1) + x1) found = !found;
  }
  return found;
}

export class Cloud {
  // layers: of each layer a list of [x, y]; groups: the group of each point; told of what is pointed at (`point`) or circled (`circle`)
  constructor({label, point, circle}) {
    this.canvas = h("canvas", {class: "cloud", tabindex: "0", role: "img", "aria-label": label});
    this.point = point;
    this.circle = circle;
    this.layers = [];
    this.groups = [];
    this.labels = new Map(); // of groups
    this.placed = {key: null, at: new Float32Array(0)};
    this.depth = 0;
    this.view = {x: 0, y: 0, zoom: 1};
    this.only = null; // a group that is set off
    this.marked = null; // numbers of points that are circled
    this.at = null; // the point that is pointed at
    this.lasso = null;
    this.circling = false;
    this.pending = false;
    this.listen();
    this.observer = new ResizeObserver(() => this.draw());
    this.observer.observe(this.canvas);
  }

  show(layers, groups, labels = new Map()) {
    this.layers = layers;
    this.groups = groups;
    this.labels = labels;
    this.names = [...new Set(groups)].sort((one, two) => one - two);
    this.rows = Uint8Array.from(groups, (group) => this.names.indexOf(group));
    this.placed.key = null;
    this.at = this.marked = null;
    this.draw();
  }

  set(values) {
    Object.assign(this, values);
    this.draw();
  }

  // where a point is now, on a plane from -1 to 1
  place(number) {
    const low = Math.min(Math.floor(this.depth), this.layers.length - 1), high = Math.min(low + 1, this.layers.length - 1);
    const part = this.depth - low, [x1, y1] = this.layers[low][number], [x2, y2] = this.layers[high][number];
    return [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
  }

  // where all points are on the canvas, [x, y, x, y, ...]; kept until something moves
  pixels() {
    const {clientWidth: width, clientHeight: height} = this.canvas, {x, y, zoom} = this.view;
    const key = [this.depth, x, y, zoom, width, height].join();
    if (key === this.placed.key) return this.placed.at;
    const scale = 0.46 * Math.min(width, height) * zoom, at = new Float32Array(2 * this.groups.length);
    for (let number = 0; number < this.groups.length; number += 1) {
      const [px, py] = this.place(number);
      at[2 * number] = width / 2 + x + px * scale;
      at[2 * number + 1] = height / 2 + y - py * scale;
    }
    this.placed = {key, at};
    return at;
  }

  radius() {
    const size = this.groups.length > 4000 ? 2.2 : this.groups.length > 800 ? 3.2 : this.groups.length > 150 ? 4.5 : 6.5;
    return size * Math.sqrt(Math.min(this.view.zoom, 4));
  }

  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.paint();
    });
  }

  paint() {
    const {canvas} = this, ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!width || !this.layers.length) return;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const radius = this.radius(), at = this.pixels(), size = Math.ceil(2.8 * radius) + 2, half = size / 2;
    const stamps = this.names.map((group) => stamp(group, radius, size, ratio)); // one picture for each group: paths are slow
    const strong = this.groups.length > 800 ? 0.6 : 0.85;
    if (this.groups.length > MANY) this.dots(pen, stamps, strong, ratio);
    else for (const weakly of [true, false]) {
      pen.globalAlpha = weakly ? 0.14 : strong;
      for (let number = 0; number < this.groups.length; number += 1) {
        const x = at[2 * number], y = at[2 * number + 1];
        if (x < -20 || y < -20 || x > width + 20 || y > height + 20 || this.isWeak(number) !== weakly) continue;
        pen.drawImage(stamps[this.rows[number]], x - half, y - half, size, size);
      }
    }
    pen.globalAlpha = 1;
    this.name(pen, at);
    if (this.at !== null) this.ring(pen, at[2 * this.at], at[2 * this.at + 1], radius + 5);
    if (this.lasso) this.loop(pen);
  }

  // Very many points, pixel by pixel: ten times as fast as drawing each. What is in front replaces what is behind it.
  dots(pen, stamps, strong, ratio) {
    const {width, height} = pen.canvas, picture = pen.createImageData(width, height), at = this.pixels();
    const cells = new Uint32Array(picture.data.buffer), masks = stamps.map(mask);
    for (const weakly of [true, false]) {
      const alpha = Math.round(255 * (weakly ? 0.14 : strong)) << 24;
      for (let number = 0; number < this.groups.length; number += 1) {
        if (this.isWeak(number) !== weakly) continue;
        const {places, paint} = masks[this.rows[number]], cell = (paint & 0xffffff) | alpha;
        const left = Math.round(at[2 * number] * ratio), top = Math.round(at[2 * number + 1] * ratio);
        for (let place = 0; place < places.length; place += 2) {
          const x = left + places[place], y = top + places[place + 1];
          if (x >= 0 && y >= 0 && x < width && y < height) cells[y * width + x] = cell;
        }
      }
    }
    pen.putImageData(picture, 0, 0);
  }

  // whether a point steps back behind a chosen group or circled points
  isWeak(number) {
    return (this.only !== null && this.only !== this.groups[number]) || (this.marked !== null && !this.marked.has(number));
  }

  // the middle of each group that has a label, on the canvas
  middles(at) {
    const sums = this.names.map((group) => ({group, x: 0, y: 0, count: 0}));
    for (let number = 0; number < this.groups.length; number += 1) {
      const sum = sums[this.rows[number]];
      sum.x += at[2 * number];
      sum.y += at[2 * number + 1];
      sum.count += 1;
    }
    return sums.filter(({group}) => this.labels.get(group)).map(({group, x, y, count}) => ({group, count, x: x / count, y: y / count}));
  }

  // Where the labels of the groups go: near the middle, where they hide few points and no other label. Groups that lie on each
  // other, as in the lowest layer, have none yet.
  labelled(at, width, height) {
    const pen = this.canvas.getContext("2d"), taken = [];
    pen.font = LABEL;
    const middles = this.middles(at).sort((one, two) => two.count - one.count);
    middles.forEach(({group, x, y}) => {
      const others = middles.filter((other) => other.group !== group).map((other) => Math.hypot(x - other.x, y - other.y));
      const strength = Math.min(Math.max((Math.min(...others) - 12) / 24, 0), 1);
      if (strength === 0) return;
      const text = this.labels.get(group), half = pen.measureText(text).width / 2 + 4;
      const across = Math.min(Math.max(x, half), width - half);
      const places = [0, -22, 22, -44, 44, -66, 66, -88, 88].map((shift) => {
        const down = Math.min(Math.max(y + shift, 12), height - 12);
        const covers = (px, py) => Math.abs(px - across) < half && Math.abs(py - down) < 14;
        const labels = taken.filter((other) => Math.abs(other.x - across) < other.half + half && Math.abs(other.y - down) < 20).length;
        let points = 0;
        if (this.groups.length <= MANY) for (let number = 0; number < at.length; number += 2) points += covers(at[number], at[number + 1]);
        return {group, text, half, strength, x: across, y: down, cost: points + 1000 * labels + Math.abs(shift) / 100};
      });
      taken.push(places.reduce((best, place) => (place.cost < best.cost ? place : best)));
    });
    return taken;
  }

  name(pen, at) {
    const {clientWidth, clientHeight} = this.canvas;
    pen.textAlign = "center";
    pen.lineJoin = "round";
    pen.lineWidth = 5;
    this.labelled(at, clientWidth, clientHeight).forEach(({group, text, strength, x, y}) => {
      pen.globalAlpha = this.only === null || this.only === group ? strength : Math.min(strength, 0.14);
      pen.strokeStyle = color("card");
      pen.strokeText(text, x, y + 5);
      pen.fillStyle = color("ink");
      pen.fillText(text, x, y + 5);
    });
    pen.globalAlpha = 1;
  }

  ring(pen, x, y, radius) {
    pen.strokeStyle = color("ink");
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, y, radius, 0, 7);
    pen.stroke();
  }

  loop(pen) {
    pen.strokeStyle = color("accent");
    pen.lineWidth = 2;
    pen.setLineDash([6, 4]);
    pen.beginPath();
    this.lasso.forEach(([x, y], number) => (number ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.stroke();
    pen.setLineDash([]);
  }

  nearest(x, y, reach) {
    let best = null, least = reach * reach;
    const at = this.pixels();
    this.groups.forEach((group, number) => {
      if (this.only !== null && this.only !== group) return;
      const distance = (at[2 * number] - x) ** 2 + (at[2 * number + 1] - y) ** 2;
      if (distance < least) [best, least] = [number, distance];
    });
    return best;
  }

  pointAt(number) {
    this.at = number;
    this.draw();
    this.point(number);
  }

  listen() {
    const {canvas} = this, fingers = new Map();
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, [event.offsetX, event.offsetY]);
      moved = 0;
      if ((this.circling || event.shiftKey) && fingers.size === 1) this.lasso = [[event.offsetX, event.offsetY]];
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId), now = [event.offsetX, event.offsetY];
      if (!before) {
        const found = this.nearest(...now, 14);
        canvas.classList.toggle("over", found !== null);
        if (found !== this.at) this.pointAt(found);
        return;
      }
      moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
      if (this.lasso) this.lasso.push(now);
      else if (fingers.size === 2) this.pinch(fingers, event.pointerId, now);
      else [this.view.x, this.view.y] = [this.view.x + now[0] - before[0], this.view.y + now[1] - before[1]];
      fingers.set(event.pointerId, now);
      this.draw();
    });
    const up = (event) => {
      if (!fingers.delete(event.pointerId)) return;
      if (this.lasso && moved > 20) this.close();
      else if (moved < 6 && event.type === "pointerup") this.pointAt(this.nearest(event.offsetX, event.offsetY, 22));
      this.lasso = null;
      this.draw();
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && document.activeElement !== canvas) return; // the page scrolls unless the map has the focus
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, {passive: false});
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (step) {
      const order = this.groups.map((_, number) => number).filter((number) => this.only === null || this.groups[number] === this.only);
      const now = order.indexOf(this.at ?? -1);
      this.pointAt(order[(now + step + order.length) % order.length]);
    } else if (event.key === "+" || event.key === "=") this.zoomBy(1.3);
    else if (event.key === "-") this.zoomBy(1 / 1.3);
    else if (event.key === "0") this.set({view: {x: 0, y: 0, zoom: 1}});
    else if (event.key === "Escape") this.circle(null);
    else return;
    event.preventDefault();
  }

  pinch(fingers, moving, now) {
    const [other] = [...fingers].filter(([id]) => id !== moving).map(([, place]) => place), before = fingers.get(moving);
    const was = Math.hypot(before[0] - other[0], before[1] - other[1]), is = Math.hypot(now[0] - other[0], now[1] - other[1]);
    this.zoomBy(is / Math.max(was, 1), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
  }

  zoomBy(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const zoom = Math.min(Math.max(this.view.zoom * factor, 0.5), 40), real = zoom / this.view.zoom;
    const middle = [this.canvas.clientWidth / 2, this.canvas.clientHeight / 2];
    this.view = {zoom, x: (this.view.x + middle[0] - x) * real + x - middle[0], y: (this.view.y + middle[1] - y) * real + y - middle[1]};
    this.draw();
  }

  close() {
    const loop = this.lasso, at = this.pixels();
    this.circle(this.groups.map((_, number) => number).filter((number) => inside(at[2 * number], at[2 * number + 1], loop)));
  }

  picture() {
    const width = 900, height = 700, scale = 0.46 * height;
    const at = this.groups.flatMap((_, number) => {
      const [x, y] = this.place(number);
      return [width / 2 + x * scale, height / 2 - y * scale];
    });
    const marks = this.groups.map((group, number) => mark(group, at[2 * number], at[2 * number + 1], Math.min(this.radius(), 6)));
    const names = this.labelled(at, width, height).map(({text, x, y}) => svg("text", {x, y: y + 5, "font-size": 15, "font-weight": 600, "font-family": "sans-serif",
      "text-anchor": "middle", fill: color("ink"), stroke: color("paper"), "stroke-width": 5, "stroke-linejoin": "round", "paint-order": "stroke"}, text));
    return svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height}, svg("rect", {width, height, fill: color("paper")}), marks, names);
  }

  leave() {
    this.observer.disconnect();
  }
}

// A group's sign as a small picture, to be put at every point.
function stamp(group, radius, size, ratio) {
  const canvas = h("canvas", {width: Math.ceil(size * ratio), height: Math.ceil(size * ratio)}), pen = canvas.getContext("2d");
  const outline = corners(group, radius);
  pen.scale(canvas.width / size, canvas.height / size);
  pen.translate(size / 2, size / 2);
  pen.fillStyle = groupColor(group);
  pen.beginPath();
  if (outline) outline.forEach(([x, y], corner) => (corner ? pen.lineTo(x, y) : pen.moveTo(x, y)));
  else pen.arc(0, 0, radius, 0, 7);
  pen.fill();
  return canvas;
}

// Where a small picture has colour, [x, y, x, y, ...] from its middle, and which.
function mask(canvas) {
  const {width, height} = canvas, {data} = canvas.getContext("2d").getImageData(0, 0, width, height), places = [];
  const cells = new Uint32Array(data.buffer);
  for (let cell = 0; cell < cells.length; cell += 1) {
    if (data[4 * cell + 3] > 110) places.push(cell % width - (width >> 1), Math.floor(cell / width) - (height >> 1));
  }
  return {places, paint: cells[(height >> 1) * width + (width >> 1)]};
}
