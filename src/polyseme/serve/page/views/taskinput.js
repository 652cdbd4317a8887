// What a task is asked about: a text, or fields for tasks that read several. The service gets a line each, with tabs between
// its parts, as `polyseme predict` does; nobody can type a tab on a page.

import {h} from "../dom.js";
import {t} from "../strings.js";

const EXAMPLES = {
  tagging: {en: "Ann Miller lives in Paris and works for the Red Cross.", zh: "王小明住在北京，在中国银行工作。"},
  classification: {en: "What a lovely day by the river!", zh: "这家酒店的服务非常好。"},
  pairs: {en: "A man sits by the river.\tSomebody is outside.", zh: "一个人坐在河边。\t有人在室外。"},
  choices: {en: "She opened her umbrella.\tIt was raining.\tThe sun was hot.", zh: "她打开了伞。\t下雨了。\t她饿了。"},
  reading: {en: "Where does Ann live?\tAnn lives in Paris. She works for a bank.", zh: "小明住在哪里？\t小明住在北京，他在银行工作。"},
  roles: {en: "1 Ann bought a boat in Paris.", zh: "1 小明 买 了 一条 船"},
  coreference: {en: "Ann said that she saw Bob. He waved to her.", zh: "小明说他看见了小红，她向他招手。"},
  generation: {en: "A man is sitting by the river.", zh: "一个人坐在河边。"},
};

// Tags that the example of taggers has: names, parts of speech, chunks, Chinese words by their characters.
const NAMES = /^(?:per|pers|person|loc|location|gpe|org|organi[sz]ation|人名|人物|地名|地点|机构|组织)(?:[^a-z].*)?$/i;
const PARTS_OF_SPEECH = /^(?:noun|propn|verb|nns?|nnps?|vb[dgnpz]?|n[rstz]?|v|vv|np|vp|名词|动词)$/i;
const PLACE_IN_WORD = /^[BMIES]$/;

function suits({kind, labels}) {
  const types = labels.map((label) => label.replace(/^[BIESMLUW]-/, ""));
  return kind !== "tagging" || types.some((type) => NAMES.test(type) || PARTS_OF_SPEECH.test(type)) || types.every((type) => PLACE_IN_WORD.test(type));
}

// A text to try; none for a tagger of its user's own kinds, of which the example has nothing.
export function example(task) {
  return suits(task) ? EXAMPLES[task.kind]?.[task.language ?? "en"] ?? "" : "";
}

const oneLine = (text) => text.replaceAll(/\s+/g, " ").trim();

// The fields of a task; `changed` hears the lines for the service.
export function taskInput(task, text, changed) {
  const field = (id, label, value, rows) => {
    const area = h("textarea", {id, rows, spellcheck: "false", class: rows > 1 ? null : "small", lang: task.language ?? "", value});
    area.addEventListener("input", () => changed(lines()));
    return {area, node: h("div", null, h("label", {for: id}, t(label)), area)};
  };
  const parts = text.split("\n")[0].split("\t");
  let fields, lines;
  if (task.kind === "pairs" || task.kind === "reading" || task.kind === "choices") {
    const more = task.kind === "choices" ? parts.slice(1).join("\n") : parts.slice(1).join(" ");
    fields = [field("first", `tasks.first.${task.kind}`, parts[0], 1), field("second", `tasks.second.${task.kind}`, more, 3)];
    lines = () => {
      const [one, two] = fields.map(({area}) => area.value);
      const rest = task.kind === "choices" ? two.split("\n").map(oneLine).filter(Boolean) : [oneLine(two)].filter(Boolean);
      return oneLine(one) && rest.length > (task.kind === "choices" ? 1 : 0) ? [oneLine(one), ...rest].join("\t") : "";
    };
  } else if (task.kind === "roles") {
    fields = [field("text", "tasks.text", text.split("\n")[0].replace(/^[\d,]+ /, ""), 2)];
    lines = () => (oneLine(fields[0].area.value) ? `0 ${oneLine(fields[0].area.value)}` : "");
  } else {
    fields = [field("text", "tasks.text", text, 3)];
    lines = () => fields[0].area.value;
  }
  return h("div", {class: "task-fields"}, fields.map(({node}) => node), h("p", {class: "help"}, t(`tasks.help.${task.kind}`)));
}
