import { cosine, embed, load, split } from "./elmo.js";

const by = (id) => document.getElementById(id);

async function compare(model) {
  const [rows, columns] = ["first", "second"].map((id) => split(by(id).value));
  const [left, right] = [await embed(model, rows), await embed(model, columns)];
  const table = by("cosines");
  const caption = table.caption;
  table.replaceChildren(caption);
  const head = table.insertRow();
  head.insertCell();
  for (const word of columns) head.append(cell(word));
  rows.forEach((word, at) => {
    const row = table.insertRow();
    row.append(cell(word));
    right.forEach((vector) => { row.insertCell().textContent = cosine(left[at], vector).toFixed(2); });
  });
}

function cell(word) {
  const made = document.createElement("th");
  made.textContent = word;
  return made;
}

try {
  const model = await load("model");
  by("state").textContent = "";
  by("compare").disabled = false;
  by("compare").addEventListener("click", () => compare(model));
  await compare(model);
} catch (error) {
  by("state").textContent = `The model cannot be loaded: ${error.message}`;
}
