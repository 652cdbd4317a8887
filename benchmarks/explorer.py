"""The explorer page in headless Chromium: `python -m benchmarks.explorer [--model en] [--points 10000] [--only views,map,pan]`.

Needs Playwright and a Chromium of the system. What is measured, and its bar:

- views: from the change of the address to a view that shows all answers for a sentence, after loading. Bar: the median within
  200 ms; half a second of waiting for the next key is not part of it, since a link does not wait.
- map: a sense map of 2,000 uses from a built index, first asked for. Bar: two seconds.
- pan: frames per second while a cloud of 10,000 points is dragged. Bar: 30.

Beside the time by the clock stands the processor time of the service, which other programs on the machine change less.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks.service_client import ServiceProcess, polyseme_serve
from benchmarks.workload import sentences

PARTS = ("views", "map", "pan")
VIEW_BAR, MAP_BAR, FRAMES_BAR = 200.0, 2.0, 30.0
MAPPED = 2000
VIEWS = {
    "sentence": ("text={text}&word=4", ".details .panel .found"),
    "edit": ("text={text}&word=4&to=street", ".matrix"),
    "pair": ("one={text}&two={other}", ".matrix"),
    "line": ("question=gap&text=[ ] {text}", ".line-columns .found"),
    "mix": ("text={text}&word=4&weights=0.2,0.3,0.5", ".panel .found"),
}
SHOW = """([link, selector]) => new Promise((done) => {
  const begin = performance.now();
  const place = document.querySelector("main");
  location.hash = link;
  const look = () => {
    const now = document.querySelector("main");
    if (now !== place && now.querySelector(selector) && !now.querySelector("[aria-busy]")) done(performance.now() - begin);
    else setTimeout(look, 2);
  };
  look();
})"""
PAN = """async ([count, seconds]) => {
  const {Cloud} = await import("/page/cloud.js"), cloud = new Cloud({label: "points", point: () => {}, circle: () => {}});
  const {canvas} = cloud, groups = Array.from({length: count}, (_, number) => number % 8);
  const around = (group, axis) => 0.7 * Math.sin(2.4 * group + axis) + 0.5 * (Math.random() + Math.random() - 1);
  document.querySelector("main").replaceChildren(canvas);
  const points = groups.map((group) => [around(group, 1), around(group, 2.57)]);
  cloud.show([points], groups, new Map([[0, "a label"], [1, "another"]]));
  const box = canvas.getBoundingClientRect(), middle = [box.left + box.width / 2, box.top + box.height / 2];
  const told = (x, y) => ({pointerId: 1, clientX: x, clientY: y, bubbles: true});
  const tell = (kind, x, y) => canvas.dispatchEvent(new PointerEvent(kind, told(x, y)));
  canvas.setPointerCapture = () => {};
  tell("pointerdown", ...middle);
  let frames = 0, begin = null;
  return new Promise((done) => {
    const step = (now) => {
      begin ??= now;
      if (now - begin >= 1000 * seconds) return void done(1000 * frames / (now - begin));
      frames += 1;
      tell("pointermove", middle[0] + 120 * Math.sin(frames / 15), middle[1] + 90 * Math.cos(frames / 21));
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
}"""


def write_corpus(path: Path) -> None:
    """2,000 different sentences with "bank" in them."""
    numbers = random.Random(0)
    parts = [words[at : at + 6] for words in sentences(1024) for at in range(0, max(len(words) - 6, 1), 6)]
    lines = dict[str, None]()
    while len(lines) < MAPPED:
        words = [*numbers.choice(parts)]
        words.insert(numbers.randrange(len(words) + 1), "bank")
        lines[" ".join(words) + " ."] = None
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def ask(service: ServiceProcess, path: str, body: dict[str, Any]) -> Any:
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{service.port}/v1/{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def measure_views(page: Any, service: ServiceProcess, rounds: int) -> dict[str, Any]:
    texts = [" ".join(words[:12]) + " ." for words in sentences(256) if len(words) >= 12]
    found: dict[str, Any] = {}
    for view, (query, selector) in VIEWS.items():
        times = []
        for number in range(rounds + 2):  # the first two load files and fill caches
            if number == 2:
                cpu = service.cpu_seconds()
            text, other = quote(texts[2 * number]), quote(texts[2 * number + 1])
            times.append(page.evaluate(SHOW, [f"#/{view}?{query.format(text=text, other=other)}", selector]))
        median, used = statistics.median(times[2:]), 1000 * (service.cpu_seconds() - cpu) / rounds
        found[view] = {"median_ms": round(median), "worst_ms": round(max(times[2:])), "server_cpu_ms": round(used)}
        found[view]["within_bar"] = median <= VIEW_BAR
    return found


def measure_map(service: ServiceProcess) -> dict[str, Any]:
    ask(service, "map", {"word": "bank", "count": 10})  # what is common in the text is counted once
    begin, cpu = time.perf_counter(), service.cpu_seconds()
    answer = ask(service, "map", {"word": "bank", "count": MAPPED})
    seconds, used = time.perf_counter() - begin, service.cpu_seconds() - cpu
    found = {"uses": len(answer["uses"]), "seconds": round(seconds, 2), "server_cpu_s": round(used, 2)}
    return found | {"within_bar": seconds <= MAP_BAR}


def measure_pan(page: Any, points: int, seconds: float) -> dict[str, Any]:
    frames = page.evaluate(PAN, [points, seconds])
    return {"points": points, "frames_per_s": round(frames, 1), "within_bar": frames >= FRAMES_BAR}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="en")
    parser.add_argument("--points", type=int, default=10_000, help="that are panned")
    parser.add_argument("--rounds", type=int, default=15, help="sentences of each view")
    parser.add_argument("--seconds", type=float, default=5, help="of panning")
    parser.add_argument("--only", default=",".join(PARTS), help="what to measure")
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    chromium = next(found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name)))
    wanted, result = options.only.split(","), dict[str, Any](vars(options))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_corpus(Path(folder) / "uses.txt")
        with polyseme_serve(options.model, "--corpus", folder) as service:
            ask(service, "similar", {"word": "river"})  # what is computed after loading is done
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1280, "height": 800}, locale="en-GB")
            page.goto(f"http://127.0.0.1:{service.port}/")
            page.wait_for_selector(".view")
            if "views" in wanted:
                result["views"] = measure_views(page, service, options.rounds)
            if "map" in wanted:
                result["map"] = measure_map(service)
            if "pan" in wanted:
                result["pan"] = measure_pan(page, options.points, options.seconds)
            browser.close()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
