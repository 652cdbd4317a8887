// Tasks: what trained tasks find in a text, drawn on it.

import {ask} from "../api.js";
import {h, later, replace} from "../dom.js";
import {empty, filler, warnings} from "../notices.js";
import {exportBar} from "../saving.js";
import {snapshot} from "../snapshot.js";
import {named, t} from "../strings.js";
import {drawn} from "./predictions.js";
import {example, taskInput} from "./taskinput.js";
import {chips, words as wordRow} from "./words.js";

export function show(root, {values, tasks, signal, note}) {
  if (!tasks.length) return void root.append(h("p", {class: "lead"}, t("tasks.lead")), empty(t("tasks.none")));
  let task = tasks.find((each) => each.id === values.task) ?? tasks[0];
  let text = values.text ?? "";
  const fields = h("div"), place = h("section", {"aria-live": "polite"}), fill = filler(place);
  const choice = h("select", {id: "task", onchange: () => {
    task = tasks.find((each) => each.id === choice.value);
    text = "";
    start();
  }}, tasks.map((each) => h("option", {value: each.id, selected: each === task}, `${each.id} · ${named("kind", each.kind)}`)));
  const changed = later(400, (given) => {
    text = given;
    look();
  });

  function look() {
    note({task: task.id, text});
    return fill(async () => {
      const lines = text.split("\n").filter((line) => line.trim());
      if (!lines.length) return empty(t("tasks.empty"));
      const found = await ask(`predict/${encodeURIComponent(task.id)}`, {input: lines}, signal);
      const picture = h("div", {class: "drawn"}, found.data.map((each, at) => drawn(each, lines[at])));
      return [warnings(found), task.kind === "roles" && predicates(found.data[0], lines[0]), picture,
        exportBar(`task-${task.id}`, {picture: () => snapshot(picture),
          rows: () => [["input", "prediction"], ...found.data.map((each, at) => [lines[at], JSON.stringify(each)])]})];
    });
  }

  // the words of the sentence, to choose the predicate from
  function predicates({words, predicates: [{index}]}, line) {
    return wordRow(words, {chosen: index, label: t("tasks.predicate"), choose: (at) => {
      text = line.replace(/^[\d,]+/, at);
      look();
    }});
  }

  function start() {
    const shown = example(task);
    replace(fields, taskInput(task, text, changed), shown && chips([shown.replaceAll("\t", " / ")], () => {
      text = shown;
      start();
    }));
    look();
  }
  root.append(h("p", {class: "lead"}, t("tasks.lead")), h("label", {class: "field"}, t("tasks.task"), choice), fields, place);
  start();
  return undefined;
}
