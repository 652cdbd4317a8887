// The page's own words, one dictionary for each language. `t` looks a string up; {name} in it is replaced.

import en from "./strings.en.js";
import zh from "./strings.zh.js";

const LANGUAGES = {en, zh};
const KEPT = "polyseme-language";
let language = "en";
let linked = null; // of the link that was opened; other views stay in it

export function chooseLanguage(wanted) {
  linked = wanted ?? linked;
  const given = [linked, localStorage.getItem(KEPT), ...(navigator.languages ?? [navigator.language])];
  const found = given.filter(Boolean).map((each) => each.toLowerCase().split("-")[0]).find((each) => Object.hasOwn(LANGUAGES, each));
  language = found ?? "en";
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  return language;
}

export function keepLanguage(wanted) {
  localStorage.setItem(KEPT, wanted);
  chooseLanguage(wanted);
}

export function currentLanguage() {
  return language;
}

export function t(name, values = {}) {
  const text = LANGUAGES[language][name] ?? en[name] ?? name;
  return text.replace(/\{(\w+)\}/g, (_, key) => String(values[key] ?? ""));
}

// A name that comes from the service, as people write it; one that is not known stays as it is.
export function named(group, name) {
  const key = `${group}.${name}`;
  return key in en ? t(key) : name;
}

// A layer as a slider names it.
export function layerName(at, last) {
  if (at === 0 && last > 0) return t("layer.static");
  return t(at === last ? "layer.top" : "layer.of", {number: at, last});
}

export function number(value, digits = 0) {
  const options = {minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: "negative"}; // no "-0.00"
  return new Intl.NumberFormat(language, options).format(value);
}

export function percent(share) {
  const digits = share >= 0.1 ? 0 : share >= 0.01 ? 1 : share >= 0.001 ? 2 : 3;
  return `${number(100 * share, digits)}%`;
}
