// Requests to the service that the page comes from, and nowhere else.

import {t} from "./strings.js";

const KEY = "polyseme-key";
export const keyIsWrong = new EventTarget();

export class ServiceError extends Error {
  constructor(message, status, code, param) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param; // the field of the request that is wrong
  }
}

export function setKey(value) {
  sessionStorage.setItem(KEY, value);
}

async function send(path, options, signal) {
  const headers = {...options.headers};
  const key = sessionStorage.getItem(KEY);
  if (key) headers.authorization = `Bearer ${key}`;
  let answer;
  try {
    answer = await fetch(path, {...options, headers, signal, credentials: "omit"});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(t("error.offline"), 0, "offline");
  }
  if (answer.ok) return answer;
  const body = await answer.json().catch(() => ({}));
  const problem = body.error ?? {};
  if (answer.status === 401) {
    keyIsWrong.dispatchEvent(new Event("wrong"));
    throw new ServiceError(t("error.key"), 401, "key");
  }
  if (answer.status === 503 && problem.code === "loading") throw new ServiceError(t("error.loading"), 503, "loading");
  if (answer.status === 429) throw new ServiceError(t("error.busy"), 429, "busy");
  const message = problem.message ? t("error.refused", problem) : t("error.unknown", {status: answer.status});
  throw new ServiceError(message, answer.status, problem.code, problem.param);
}

const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

export async function get(path, signal) {
  return (await send(path, {}, signal)).json();
}

// Ask; an answer that says "busy" is tried again a few times.
export async function ask(path, body, signal) {
  const options = {method: "POST", headers: {"content-type": "application/json"}, body: JSON.stringify(body)};
  for (let tries = 0; ; tries += 1) {
    try {
      return await (await send(`v1/${path}`, options, signal)).json();
    } catch (error) {
      if (error.code !== "busy" || tries >= 3) throw error;
      await wait(1 + tries);
    }
  }
}

// Vectors of the words of texts, all layers: {texts: [{words, offsets, layers: [[Float32Array, ...], ...]}, ...], warning}
export async function vectors(model, input, signal) {
  const answer = await ask("words", {model, input, layers: "all", encoding_format: "base64"}, signal);
  const texts = answer.data.map((each) => {
    if (each.error) throw new ServiceError(t("error.refused", each.error), 422, each.error.code);
    const bytes = Uint8Array.from(atob(each.vectors), (letter) => letter.charCodeAt(0));
    const numbers = new Float32Array(bytes.buffer);
    const [layers, words, dim] = each.shape;
    const at = (layer, word) => numbers.subarray((layer * words + word) * dim, (layer * words + word + 1) * dim);
    const rows = (layer) => Array.from({length: words}, (_, word) => at(layer, word));
    return {words: each.words, offsets: each.offsets, layers: Array.from({length: layers}, (_, layer) => rows(layer))};
  });
  return {texts, warning: answer.warning};
}

export function cosine(first, second) {
  let product = 0, one = 0, two = 0;
  for (let at = 0; at < first.length; at += 1) {
    product += first[at] * second[at];
    one += first[at] * first[at];
    two += second[at] * second[at];
  }
  return one > 0 && two > 0 ? product / Math.sqrt(one * two) : 0;
}
