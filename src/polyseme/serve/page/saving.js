// Export: pictures as SVG or PNG, tables as CSV. The files are made in the page; nothing is sent anywhere.

import {h} from "./dom.js";
import {t} from "./strings.js";

function save(blob, name) {
  const link = h("a", {href: URL.createObjectURL(blob), download: name});
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Rows as CSV. A cell that a spreadsheet would run as a formula gets an apostrophe before it.
export function csv(rows) {
  const cell = (value) => {
    if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
    const text = value === null || value === undefined ? "" : String(value);
    const safe = /^[=+\-@\t\r]/.test(text) && text.length > 1 ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return `\ufeff${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

function source(picture) {
  const copy = picture.cloneNode(true);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.removeAttribute("class");
  return new XMLSerializer().serializeToString(copy);
}

function png(picture) {
  const [, , width, height] = picture.getAttribute("viewBox").split(" ").map(Number);
  const image = new Image();
  return new Promise((done, failed) => {
    image.onload = () => {
      const canvas = h("canvas", {width: 2 * width, height: 2 * height});
      canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
      canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("PNG"))), "image/png");
    };
    image.onerror = () => failed(new Error("PNG"));
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(source(picture))}`;
  });
}

// Buttons under a view. `picture` and `rows` are functions, called when a button is pressed; either may be missing.
export function exportBar(name, {picture, rows}) {
  const button = (label, press) => h("button", {type: "button", class: "quiet", onclick: press}, label);
  const link = button(t("export.link"), async () => {
    let copied = true;
    try {
      await navigator.clipboard.writeText(location.href);
    } catch {
      copied = false; // not allowed here: the address bar has it
    }
    link.textContent = copied ? t("export.copied") : t("export.address");
    setTimeout(() => (link.textContent = t("export.link")), 2000);
  });
  const drawn = (use) => {
    const made = picture(); // null: there is none yet
    if (made) use(made);
  };
  return h("div", {class: "export", role: "group", "aria-label": t("export.title")},
    link,
    picture && button("SVG", () => drawn((made) => save(new Blob([source(made)], {type: "image/svg+xml"}), `${name}.svg`))),
    picture && button("PNG", () => drawn(async (made) => save(await png(made), `${name}.png`))),
    rows && button("CSV", () => save(new Blob([csv(rows())], {type: "text/csv;charset=utf-8"}), `${name}.csv`)));
}
