// The state of a view is in the address (`#/sentence?text=...&word=4`), so that a link brings it back.

export function read() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  return {view: path || "sentence", values: Object.fromEntries(new URLSearchParams(query ?? ""))};
}

// A number of a link; null: there is none that can be read.
export function numberIn(value) {
  return value !== undefined && value.trim() !== "" && Number.isFinite(Number(value)) ? Number(value) : null;
}

export function address(view, values) {
  const kept = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(kept).toString();
  return `#/${view}${query ? `?${query}` : ""}`;
}

// Note the state without a new entry in the history, and without drawing again.
export function note(view, values) {
  const wanted = address(view, values);
  if (location.hash !== wanted) history.replaceState(null, "", wanted);
}

export function go(view, values = {}) {
  location.hash = address(view, values);
}
