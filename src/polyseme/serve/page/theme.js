// Light, dark, or as the system says.

const KEPT = "polyseme-theme";
const THEMES = ["auto", "light", "dark"];

export function theme() {
  const kept = localStorage.getItem(KEPT);
  return THEMES.includes(kept) ? kept : "auto";
}

export function chooseTheme() {
  document.documentElement.dataset.theme = theme();
}

export function nextTheme() {
  localStorage.setItem(KEPT, THEMES[(THEMES.indexOf(theme()) + 1) % THEMES.length]);
  chooseTheme();
}
