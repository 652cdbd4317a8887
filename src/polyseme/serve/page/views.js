// All views, in the order of the list. `models`: whether a view asks one chosen model.

import {show as edit} from "./views/edit.js";
import {show as line} from "./views/line.js";
import {show as map} from "./views/map.js";
import {show as mix} from "./views/mix.js";
import {show as pair} from "./views/pair.js";
import {show as sentence} from "./views/sentence.js";
import {show as tasks} from "./views/tasks.js";
import {show as training} from "./views/training.js";

export const VIEWS = [
  {name: "sentence", show: sentence, models: true},
  {name: "map", show: map, models: true},
  {name: "edit", show: edit, models: true},
  {name: "pair", show: pair, models: true},
  {name: "line", show: line, models: false},
  {name: "mix", show: mix, models: true},
  {name: "tasks", show: tasks, models: false},
  {name: "training", show: training, models: false},
];
