// Ask the search of a built site without a browser: node site_search.js [--links] FOLDER QUERY... -> JSON, the pages of each query
// in order; with --links as PAGE.html, or PAGE.html#TITLE for a section.
const fs = require("fs"), path = require("path"), vm = require("vm");
const links = process.argv[2] === "--links";
const [folder, ...queries] = process.argv.slice(links ? 3 : 2);
const page = { getElementById: () => null, addEventListener() {}, documentElement: { dataset: {}, lang: path.basename(folder) } };
const context = vm.createContext({ document: page, _ready() {}, _: (text) => text, SPHINX_HIGHLIGHT_ENABLED: false });
vm.runInContext("var window = globalThis", context);
for (const file of ["_static/search_texts.js", "_static/searchtools.js", "_static/language_data.js", "searchindex.js"]) {  // in the order of search.html
  vm.runInContext(fs.readFileSync(`${folder}/${file}`, "utf8"), context);
}
const ask = vm.runInContext("(query) => Search._performSearch(...Search._parseQuery(query))", context);
const shown = ([page, title, anchor]) => (links ? `${page}.html${anchor ? `#${title.split(" > ").pop()}` : ""}` : page);
const found = queries.map((query) => [query, ask(query).reverse().map(shown)]);
console.log(JSON.stringify(Object.fromEntries(found)));
