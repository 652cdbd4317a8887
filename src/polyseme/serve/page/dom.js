// Elements, made from data. Text goes in as text nodes only: nothing that a user or a model gives is ever parsed as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else if (name === "checked" || name === "selected" || name === "disabled" || name === "hidden") element[name] = value;
    else if (name === "vars") for (const [key, each] of Object.entries(value)) element.style.setProperty(`--${key}`, each);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// h("p", {class: "note"}, "text", h("b", null, "more")); `onclick` and the like are listeners, `vars` are CSS variables
export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// the value of a CSS variable now, for what is drawn on canvases and into exported pictures
export function color(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// Call a function when nothing has happened for a while.
export function later(milliseconds, run) {
  let timer = 0;
  const call = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), milliseconds);
  };
  call.cancel = () => clearTimeout(timer);
  return call;
}

// A word that is longer than any: of static vectors some "words" are whole lines.
export const cropped = (word, most = 40) => ([...word].length > most ? `${[...word].slice(0, most).join("")}…` : word);

// Words as text: a space between two words unless one side is Chinese, or a sign that holds on to its neighbour.
const WIDE = /[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f]/;
export function gap(before, after) {
  if (before === undefined || after === undefined || before === "" || after === "") return "";
  if (WIDE.test(before.at(-1)) || WIDE.test(after[0])) return "";
  if (/^[.,;:!?)\]}%’”]/.test(after) || /^(n['’]t|['’](s|re|ve|ll|d|m))$/i.test(after)) return "";
  return /[([{“‘$]$/.test(before) ? "" : " ";
}

export function joined(words) {
  return words.map((word, place) => gap(words[place - 1], word) + word).join("");
}

// A sentence with one word set off, cut to some words on either side.
export function context(words, position, reach = 9) {
  const begin = Math.max(position - reach, 0), end = Math.min(position + reach + 1, words.length);
  const before = joined(words.slice(begin, position)), after = joined(words.slice(position + 1, end));
  return h("span", {class: "context"},
    (begin > 0 ? "…\u00a0" : "") + before + gap(words[position - 1], words[position]),
    h("b", null, words[position]),
    gap(words[position], words[position + 1]) + after + (end < words.length ? "\u00a0…" : ""));
}
