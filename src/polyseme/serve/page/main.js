// The frame: header, list of views, choice of model, language and theme; it shows the view that the address names.

import {get, keyIsWrong, setKey} from "./api.js";
import {h, replace} from "./dom.js";
import {address, go, note, read} from "./state.js";
import {chooseLanguage, currentLanguage, keepLanguage, named, t} from "./strings.js";
import {chooseTheme, nextTheme, theme} from "./theme.js";
import {failure} from "./notices.js";
import {VIEWS} from "./views.js";

const shown = {models: [], tasks: [], view: null, leave: null, stop: null};

function chosenModel(name) {
  const {models} = shown;
  const found = models.find((model) => model.id === name);
  if (found) return {model: found, missing: null};
  const speaks = models.find((model) => model.language === currentLanguage());
  return {model: speaks ?? models[0], missing: name ?? null};
}

function navigation(current, values) {
  const keep = {model: values.model};
  const links = VIEWS.map(({name}) =>
    h("li", null, h("a", {href: address(name, keep), "aria-current": name === current ? "page" : null}, t(`view.${name}`))));
  const menu = h("select", {class: "menu", "aria-label": t("nav"), onchange: () => go(menu.value, keep)},
    VIEWS.every(({name}) => name !== current) && h("option", {selected: true}, ""),
    VIEWS.map(({name}) => h("option", {value: name, selected: name === current}, t(`view.${name}`))));
  return h("nav", {"aria-label": t("nav")}, h("ul", null, links), menu);
}

function modelChoice(view, model) {
  const choice = h("select", {id: "model", onchange: () => {
    const {values} = read();
    const other = shown.models.find((each) => each.id === choice.value);
    go(view, other.language === model.language ? {...values, model: choice.value} : {model: choice.value});
  }}, shown.models.map((each) => h("option", {value: each.id, selected: each === model}, `${each.id} · ${named("kind", each.kind)}`)));
  return h("label", {class: "model"}, h("span", null, t("model")), choice);
}

function switches() {
  const language = h("button", {type: "button", class: "quiet language", lang: currentLanguage() === "zh" ? "en" : "zh-Hans",
    title: t("language.label"), onclick: () => {
      keepLanguage(currentLanguage() === "zh" ? "en" : "zh");
      const {view, values} = read();
      note(view, {...values, lang: undefined});
      draw();
    }}, t("language"));
  const look = h("button", {type: "button", class: "quiet theme", "aria-label": t(`theme.${theme()}`), title: t(`theme.${theme()}`),
    onclick: () => {
      nextTheme();
      draw();
    }}, {auto: "◐", light: "☀", dark: "☾"}[theme()]);
  return h("div", {class: "switches"}, language, look);
}

// What has the focus is made anew: the same thing gets it again, so that the keyboard goes on from there.
function focused() {
  const now = document.activeElement;
  if (now?.matches("nav a")) return "nav a[aria-current]";
  return ["#model", ".menu", ".language", ".theme"].find((each) => now?.matches(each)) ?? null;
}

function draw() {
  const focus = focused(), {view} = read();
  drawView();
  if (focus) document.querySelector(focus)?.focus();
  if (shown.view !== view) scrollTo(0, 0);
  shown.view = view;
}

function drawView() {
  shown.leave?.();
  shown.stop?.abort();
  const {view, values} = read();
  chooseLanguage(values.lang);
  document.title = t("title");
  const found = VIEWS.find(({name}) => name === view);
  const {model, missing} = chosenModel(values.model);
  const main = h("main", {id: "content", tabindex: "-1"});
  const title = h("h1", null, found ? t(`view.${view}`) : t("title"));
  const head = h("div", {class: "view-head"}, title, found?.models && shown.models.length > 1 && modelChoice(view, model));
  replace(document.body,
    h("a", {class: "skip", href: "#content", onclick: (event) => {
      event.preventDefault();
      main.focus();
    }}, t("skip")),
    h("header", null, h("a", {class: "brand", href: "#/sentence"}, "polyseme"), navigation(view, values), switches()),
    main);
  main.append(head);
  if (!found) {
    main.append(h("p", {class: "notice"}, t("error.view")));
    return;
  }
  if (missing && found.models) main.append(h("p", {class: "notice"}, t("error.model", {name: missing, used: model.id})));
  document.title = `${t(`view.${view}`)} · polyseme`;
  const root = main.appendChild(h("div", {class: `view ${view}`}));
  shown.stop = new AbortController();
  const keep = {model: values.model, lang: values.lang};
  const context = {
    model, values, models: shown.models, tasks: shown.tasks, signal: shown.stop.signal,
    note: (changed) => note(view, {...keep, ...changed}),
  };
  shown.leave = found.show(root, context) ?? null;
}

function askForKey() {
  const field = h("input", {type: "password", id: "key", autocomplete: "off"});
  const form = h("form", {class: "key", onsubmit: (event) => {
    event.preventDefault();
    setKey(field.value);
    start();
  }}, h("label", {for: "key"}, t("key.label")), field, h("button", null, t("key.go")));
  replace(document.body, h("main", null, h("h1", null, "polyseme"), h("p", null, t("error.key")), form));
  field.focus();
}

async function start() {
  chooseLanguage(read().values.lang);
  chooseTheme();
  replace(document.body, h("main", null, h("h1", null, "polyseme"), h("p", {class: "waiting", role: "status"}, t("loading"))));
  for (;;) {
    try {
      const answer = await get("v1/models");
      shown.models = answer.data;
      shown.tasks = answer.tasks;
      break;
    } catch (error) {
      if (error.code === "key") return;
      if (error.code !== "loading") {
        replace(document.body, h("main", null, h("h1", null, "polyseme"), failure(error, start)));
        return;
      }
      await new Promise((done) => setTimeout(done, 700));
    }
  }
  draw();
}

keyIsWrong.addEventListener("wrong", askForKey);
addEventListener("hashchange", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
start();
