// Tasks: what trained tasks find in a text, drawn on it.

import {ask} from "../api.js";
import {h, later} from "../dom.js";
import {empty, filler} from "../notices.js";
import {exportBar} from "../saving.js";
import {t} from "../strings.js";
import {drawn} from "./predictions.js";

const EXAMPLES = {
  tagging: "Ann lives in Paris and works for the bank.",
  classification: "What a lovely day by the river!",
  pairs: "A man sits by the river.\tSomebody is outside.",
  choices: "She opened her umbrella.\tIt was raining.\tThe sun was hot.",
  reading: "Where does Ann live?\tAnn lives in Paris. She works for a bank.",
  roles: "1 Ann bought a boat in Paris",
  coreference: "Ann said that she saw Bob. He waved to her.",
  generation: "The river",
};

export function show(root, {values, tasks, signal, note}) {
  if (!tasks.length) return void root.append(h("p", {class: "lead"}, t("tasks.lead")), empty(t("tasks.none")));
  const task = tasks.find((each) => each.id === values.task) ?? tasks[0];
  const state = {task: task.id, text: values.text ?? EXAMPLES[task.kind] ?? ""};
  const place = h("section", {"aria-live": "polite"}), fill = filler(place);
  const choice = h("select", {id: "task", onchange: () => {
    state.task = choice.value;
    const kind = tasks.find((each) => each.id === state.task).kind;
    input.value = state.text = EXAMPLES[kind] ?? "";
    help.textContent = t(`tasks.help.${kind}`);
    look();
  }}, tasks.map((each) => h("option", {value: each.id, selected: each === task}, `${each.id} · ${each.kind}`)));
  const input = h("textarea", {id: "text", rows: 3, spellcheck: "false", value: state.text});
  const help = h("p", {class: "help"}, t(`tasks.help.${task.kind}`));
  input.addEventListener("input", later(400, () => {
    state.text = input.value;
    look();
  }));

  function look() {
    note({task: state.task, text: state.text});
    return fill(async () => {
      const lines = state.text.split("\n").filter((line) => line.trim());
      if (!lines.length) return empty(t("tasks.empty"));
      const found = await ask(`predict/${encodeURIComponent(state.task)}`, {input: lines}, signal);
      return [h("div", {class: "drawn"}, found.data.map((each, at) => drawn(each, lines[at]))),
        exportBar(`task-${state.task}`, {rows: () => [["input", "prediction"], ...found.data.map((each, at) => [lines[at], JSON.stringify(each)])]})];
    });
  }
  root.append(h("p", {class: "lead"}, t("tasks.lead")), h("label", {class: "field"}, t("tasks.task"), choice),
    h("label", {class: "hidden", for: "text"}, t("tasks.text")), input, help, place);
  look();
  return undefined;
}
