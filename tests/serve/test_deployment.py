"""The commands of docs/*/how-to/serve.md run, and those of the Dockerfile, in a fresh virtual environment."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.page_files import make_files

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_commands_of_the_page(tmp_path: Path, language: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("needs curl")
    make_files(tmp_path)
    text = (ROOT / "docs" / language / "how-to" / "serve.md").read_text(encoding="utf-8")
    commands = "\n".join(re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)).replace("8000", str(free_port()))
    script = f"set -em\ntrap 'kill $! 2>/dev/null || true' EXIT\n{commands}\nwait\n"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    for shown in ('"offsets":[[0,', "polyseme_words_total", "(6, ", '"tags":['):
        assert shown in done.stdout


@pytest.mark.slow
def test_the_dockerfile_in_a_fresh_environment(tmp_path: Path) -> None:
    """What `docker build` and `docker run` do, without Docker: copy, install, start, ask, stop."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    app, venv = tmp_path / "app", tmp_path / "venv"
    app.mkdir()
    for line in lines:
        if line.startswith("COPY "):
            *sources, target = line.split()[1:]
            for source in sources:
                if (ROOT / source).is_dir():
                    shutil.copytree(ROOT / source, app / target, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / source, app / target)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    installs = [line.removeprefix("RUN ") for line in lines if line.startswith("RUN pip ")]
    assert len(installs) == 2
    for line in installs:
        words = [
            word for word in shlex.split(line) if word not in ("--extra-index-url", "https://download.pytorch.org/whl/cpu")
        ]
        done = subprocess.run([str(venv / "bin" / words[0]), *words[1:]], cwd=app, capture_output=True, text=True, check=False)
        if "No matching distribution" in done.stderr or "Connection" in done.stderr:
            pytest.skip("no package index")
        assert done.returncode == 0, done.stderr
    entry, command = (json.loads(line.partition(" ")[2]) for line in lines if line.startswith(("ENTRYPOINT", "CMD")))
    port = str(free_port())
    started = [str(venv / "bin" / entry[0]), *(port if word == "8000" else word for word in entry[1:]), *command]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.Popen(started, cwd=tmp_path, env=environment)
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
                    assert answer.status == 200
                    break
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.5)
        process.terminate()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def test_the_compose_example_names_what_there_is() -> None:
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    assert (ROOT / "deploy" / compose["services"]["polyseme"]["build"] / "Dockerfile").is_file()
    scrape = yaml.safe_load((ROOT / "deploy" / "prometheus.yml").read_text(encoding="utf-8"))["scrape_configs"][0]
    name = scrape["static_configs"][0]["targets"][0].partition(":")[0]
    command = compose["services"]["polyseme"]["command"]
    assert name in compose["services"] and command[command.index("--allow-host") + 1] == name
