// Ask the search of a built site without a browser: node site_search.js FOLDER QUERY... -> JSON, the pages of each query in order.
const fs = require("fs"), path = require("path"), vm = require("vm");
const [folder, ...queries] = process.argv.slice(2);
const page = { getElementById: () => null, addEventListener() {}, documentElement: { dataset: {}, lang: path.basename(folder) } };
const context = vm.createContext({ document: page, _ready() {}, _: (text) => text, SPHINX_HIGHLIGHT_ENABLED: false });
vm.runInContext("var window = globalThis", context);
for (const file of ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"]) {  // in the order of search.html
  vm.runInContext(fs.readFileSync(`${folder}/${file}`, "utf8"), context);
}
const ask = vm.runInContext("(query) => Search._performSearch(...Search._parseQuery(query))", context);
const found = queries.map((query) => [query, ask(query).reverse().map((result) => result[0])]);
console.log(JSON.stringify(Object.fromEntries(found)));
