// A place for the reader's own text: pasted, or a file that is dropped or chosen. It goes to this service only.

import {h, replace} from "../dom.js";
import {number, t} from "../strings.js";

const MOST = 4 << 20; // letters

// `target`: where a file may be dropped
export function ownText(target, now, use) {
  const area = h("textarea", {class: "small", id: "own", rows: 4, value: now ?? "", placeholder: t("own.placeholder")});
  const said = h("p", {class: "help", role: "status"});
  const file = h("input", {type: "file", accept: ".txt,text/plain", id: "own-file", onchange: () => take(file.files)});

  async function take(files) {
    const texts = await Promise.all([...files].map((each) => each.text()));
    const text = texts.join("\n");
    if (text.length > MOST) return replace(said, t("own.large", {most: number(MOST)}));
    area.value = text;
    return use(text);
  }

  const box = h("details", {class: "own", open: now !== null}, h("summary", null, t("own.title")),
    h("label", {for: "own"}, t("own.label")), area,
    h("div", {class: "row"},
      h("button", {type: "button", class: "main", onclick: () => area.value.trim() && use(area.value)}, t("own.use")),
      h("button", {type: "button", onclick: () => {
        area.value = "";
        use(null);
      }}, t("own.back")),
      h("label", {class: "field", for: "own-file"}, t("own.file"), file)), said);
  target.addEventListener("dragover", (event) => {
    event.preventDefault();
    box.classList.add("over");
  });
  target.addEventListener("dragleave", () => box.classList.remove("over"));
  target.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    box.open = true;
    const {files} = event.dataTransfer;
    if (files.length) take(files);
    else {
      area.value = event.dataTransfer.getData("text/plain");
      if (area.value.trim()) use(area.value);
    }
  });
  return box;
}
