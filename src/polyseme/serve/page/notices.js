// What a view says while it works, and when something went wrong.

import {h, replace} from "./dom.js";
import {t} from "./strings.js";

export function failure(error, again) {
  return h("div", {class: "notice wrong", role: "alert"}, h("p", null, error.message),
    again && h("button", {type: "button", onclick: again}, t("error.retry")));
}

export function empty(text) {
  return h("p", {class: "notice"}, text);
}

// What the service warns of in its answers, each warning once; false: nothing.
export function warnings(...answers) {
  const told = new Set(answers.map((each) => each?.warning).filter(Boolean));
  return told.size > 0 && h("p", {class: "notice"}, t("warning", {message: [...told].join("; ")}));
}

// Fill a place with what an async function gives; a later call wins over an earlier one that is slow.
export function filler(place) {
  let latest = 0;
  return async function run(make) {
    latest += 1;
    const mine = latest;
    const slow = setTimeout(() => mine === latest && place.classList.add("busy"), 250);
    place.setAttribute("aria-busy", "true");
    let content;
    try {
      content = await make();
    } catch (error) {
      if (error.name === "AbortError") return;
      content = failure(error, error.status === 422 ? null : () => run(make)); // the same again would be refused again
    } finally {
      clearTimeout(slow);
    }
    if (mine !== latest) return;
    place.classList.remove("busy");
    place.removeAttribute("aria-busy");
    replace(place, content);
  };
}
