// All views, in the order of the list. `models`: whether a view asks one chosen model.

import {show as sentence} from "./views/sentence.js";

export const VIEWS = [
  {name: "sentence", show: sentence, models: true},
];
