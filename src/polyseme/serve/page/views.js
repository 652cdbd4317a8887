// All views, in the order of the list. `models`: whether a view asks one chosen model.

import {show as map} from "./views/map.js";
import {show as sentence} from "./views/sentence.js";

export const VIEWS = [
  {name: "sentence", show: sentence, models: true},
  {name: "map", show: map, models: true},
];
