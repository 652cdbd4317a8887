// A sentence as a row of words to choose from, by mouse, finger or keyboard (arrows, Home, End). `below` gives what stands
// under a word, and `key` says before the first one what that is.

import {h} from "../dom.js";
import {t} from "../strings.js";

export function words(list, {chosen, choose, below, key, label}) {
  const buttons = list.map((word, at) => h("button", {type: "button", class: "word", tabindex: at === (chosen ?? 0) ? 0 : -1,
    "aria-pressed": at === chosen ? "true" : "false", onclick: () => press(at)}, h("span", {class: "said"}, word), below?.(at)));
  function press(at) {
    buttons.forEach((button, place) => {
      button.setAttribute("aria-pressed", place === at ? "true" : "false");
      button.tabIndex = place === at ? 0 : -1;
    });
    choose(at);
  }
  const steps = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity};
  return h("div", {class: "words", role: "group", "aria-label": label ?? t("sentence.words"), onkeydown: (event) => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    const now = buttons.indexOf(document.activeElement);
    const next = Math.min(Math.max(now + steps[event.key], 0), buttons.length - 1);
    buttons.forEach((button, place) => (button.tabIndex = place === next ? 0 : -1));
    buttons[next].focus();
  }}, key, buttons);
}

export function chips(texts, choose) {
  return h("div", {class: "chips", role: "group", "aria-label": t("examples")},
    texts.map((text, at) => h("button", {type: "button", class: "chip", onclick: () => choose(text, at)}, text)));
}
