// What the theme leaves out for keyboards and screen readers.
document.addEventListener("DOMContentLoaded", () => {
  const chinese = document.documentElement.lang.startsWith("zh");
  const set = (selector, name, value) => {
    for (const each of document.querySelectorAll(selector)) each.setAttribute(name, value);
  };
  // areas that scroll sideways can be reached by keyboard
  set(".table-wrapper, .highlight pre, div.output, .math-wrapper, p:has(> img[src$='lineage-cost.svg'])", "tabindex", "0");
  // long commands wrap, but not inside an option, nor between it and a short value
  for (const pre of document.querySelectorAll(".highlight-text pre, .highlight-sh pre, .highlight-bash pre")) {
    for (const option of [...pre.querySelectorAll(".line")].flatMap((line) => [...line.childNodes])) {
      const space = option.nextSibling, value = space?.nextSibling, end = value?.nextSibling;
      if (!/^--?[\w-]+$/.test(option.textContent) || !value || space.textContent !== " " || value.textContent.startsWith("-")) continue;
      if (option.textContent.length + value.textContent.length > 36 || end?.textContent.trim()) continue;  // a phone's width
      const pair = document.createElement("span");
      pair.style.whiteSpace = "nowrap";
      option.replaceWith(pair);
      pair.append(option, space, value);
    }
    const texts = [], walk = document.createTreeWalker(pre, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) texts.push(walk.currentNode);
    for (const text of texts) {
      const parts = text.data.split(/(--?[\w-]+)/);
      if (parts.length === 1) continue;
      text.replaceWith(...parts.map((part, number) => {
        if (number % 2 === 0) return part;
        const option = document.createElement("span");
        option.style.whiteSpace = "nowrap";
        option.textContent = part;
        return option;
      }));
    }
  }
  for (const each of document.querySelectorAll("code .pre")) if (each.textContent.length < 25) each.style.whiteSpace = "nowrap";
  set(".sidebar-drawer", "aria-label", chinese ? "网站导航" : "Site navigation");
  set(".toc-drawer", "aria-label", chinese ? "本页目录" : "On this page");
  set("p.caption[role='heading']", "aria-level", "2");
  if (chinese) {  // names that the theme does not take from the catalogue
    const names = {
      "Toggle site navigation sidebar": "打开或关闭网站导航",
      "Toggle table of contents sidebar": "打开或关闭本页目录",
      "Toggle Light / Dark / Auto color theme": "切换浅色、深色或自动配色",
      "Toggle navigation of ": "展开或收起",
      Contents: "目录",
      Menu: "菜单",
      Expand: "展开",
      "Light mode": "浅色",
      "Dark mode": "深色",
      "Auto light/dark, in light mode": "自动配色，当前浅色",
      "Auto light/dark, in dark mode": "自动配色，当前深色",
    };
    const translated = (text) => Object.entries(names).reduce((name, [theirs, ours]) => name.replace(theirs, ours), text);
    for (const each of document.querySelectorAll("[aria-label^='Toggle ']")) {
      each.setAttribute("aria-label", translated(each.getAttribute("aria-label")));
    }
    for (const each of document.querySelectorAll("symbol title")) each.textContent = names[each.textContent] ?? each.textContent;
  }
  // the corner of a table with row names is no header
  for (const each of document.querySelectorAll("th")) {
    if (each.textContent.trim()) continue;
    const cell = document.createElement("td");
    cell.className = each.className;
    each.replaceWith(cell);
  }
  const main = document.querySelector("[role='main']");
  if (main && !document.querySelector("h1")) {
    const title = document.createElement("h1");
    title.textContent = chinese ? "搜索" : "Search";
    main.prepend(title);
  }
});
