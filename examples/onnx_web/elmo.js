// An ELMo in the browser: `polyseme convert MODEL model --to onnx` writes the folder that `load` opens.
import * as ort from "./node_modules/onnxruntime-web/dist/ort.wasm.min.mjs";

const BEGIN_WORD = 259, END_WORD = 260, PADDING = 261; // a byte has the id byte + 1

export async function load(folder) {
  const head = await (await fetch(`${folder}/onnx.json`)).json();
  if (head.config.characters?.alphabet !== "utf8") throw new Error("this example reads words by their UTF-8 bytes only");
  ort.env.wasm.numThreads = 1;
  const open = (name) => ort.InferenceSession.create(`${folder}/${name}.onnx`);
  return { config: head.config, sessions: [await open("forward"), await open("backward")] };
}

// A simple splitter: words with their apostrophes and hyphens, numbers, single signs.
// Python's splitters know more: send words that are split already where it matters.
export function split(text) {
  return text.match(/[\p{L}\p{M}]+(?:['’-][\p{L}\p{M}]+)*|\p{N}+|[^\s\p{L}\p{M}\p{N}]/gu) ?? [];
}

export function spell(word, length) {
  const ids = new BigInt64Array(length).fill(BigInt(PADDING));
  const bytes = new TextEncoder().encode(word).slice(0, length - 2);
  ids[0] = BigInt(BEGIN_WORD);
  bytes.forEach((byte, at) => { ids[at + 1] = BigInt(byte + 1); });
  ids[bytes.length + 1] = BigInt(END_WORD);
  return ids;
}

// Words of one sentence -> a Float32Array for each word: both halves of a layer.
export async function embed(model, words, layer = model.sessions[0].outputNames.length - 1) {
  if (!words.length) return [];
  const length = model.config.characters.max_length;
  const distinct = [...new Set(words)];
  const ids = new BigInt64Array(distinct.length * length);
  distinct.forEach((word, at) => ids.set(spell(word, length), at * length));
  const index = BigInt64Array.from(words, (word) => BigInt(distinct.indexOf(word)));
  const inputs = {
    characters: new ort.Tensor("int64", ids, [distinct.length, length]),
    index: new ort.Tensor("int64", index, [1, words.length]),
    lengths: new ort.Tensor("int64", BigInt64Array.of(BigInt(words.length)), [1]),
  };
  const halves = [];
  for (const session of model.sessions) halves.push((await session.run(inputs))[`layer${layer}`]);
  const size = halves[0].dims[2];
  return words.map((_, at) => {
    const vector = new Float32Array(2 * size);
    halves.forEach((half, number) => vector.set(half.data.subarray(at * size, (at + 1) * size), number * size));
    return vector;
  });
}

export function cosine(a, b) {
  let product = 0, left = 0, right = 0;
  for (let at = 0; at < a.length; at++) { product += a[at] * b[at]; left += a[at] ** 2; right += b[at] ** 2; }
  return product / Math.sqrt(left * right || 1);
}
