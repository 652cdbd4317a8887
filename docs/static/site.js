// Areas that scroll sideways can be reached by keyboard.
document.addEventListener("DOMContentLoaded", () => {
  for (const each of document.querySelectorAll(".table-wrapper, .highlight pre, div.output, math[display='block']")) {
    each.setAttribute("tabindex", "0");
  }
});
