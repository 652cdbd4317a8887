"""The HTTP service under load: `python -m benchmarks.service [--model en] [--seconds 30] [--only rate,overload]`.

All on this machine, over loopback. What is measured, and its bar:

- ratio: words/s of raw float32 vectors (top layer) through HTTP and of `model.embed` in one process, in turn; the processor
  time of the client is taken off. Bar: 70 %.
- capacity: requests/s of one sentence each, from 64 clients
- rate: 80 % of the capacity at a constant arrival rate (default: five minutes with `--seconds 300`). Bar: no failure.
- overload: three times the capacity. Bar: 429, and answers as before within two seconds after it.
- memory: private memory after requests for a minute, and after as many requests as an hour at 80 % has. Bar: 5 % more.
- others: the longest wait for `/livez` and for a short request while another client sends four million empty lists, or one
  text of 4,200 words
- peer: requests/s of one sentence each at 1, 8 and 64 clients, beside `benchmarks.service_peer`: FastAPI as people write it,
  one `encode` a request, with the same model, and with one of sentence-transformers of the same size (where it is installed)
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import sys
import time
from typing import Any

import torch

import polyseme
from benchmarks.service_client import Connection, Request, ServiceProcess, closed_loop, constant_rate, polyseme_serve
from benchmarks.service_peer import OTHER
from benchmarks.workload import sentences

PARTS = ("ratio", "capacity", "rate", "overload", "memory", "others", "peer")
RATIO_BAR, MEMORY_BAR, RECOVERY_BAR = 0.7, 1.05, 2.0
BULK, BULK_CLIENTS, CLIENTS = 64, 4, 64


def single(texts: list[list[str]]) -> list[Request]:
    return [Request.post("/v1/words", {"input": [text]}, len(text)) for text in texts]


def ratio(model: str, service: ServiceProcess, texts: list[list[str]], seconds: float, rounds: int) -> dict[str, Any]:
    """HTTP and `embed` in turn, on the same words."""
    encoder, words = polyseme.load(model), sum(map(len, texts))
    chunks = [texts[begin : begin + BULK] for begin in range(0, len(texts), BULK)]
    requests = [Request.post("/v1/words", {"input": chunk}, sum(map(len, chunk))) for chunk in chunks]
    encoder.embed(texts, layers="top")
    found: list[dict[str, float]] = []
    asyncio.run(closed_loop(service.port, requests, BULK_CLIENTS, 2))
    for _ in range(rounds):
        begin, cpu, count = time.perf_counter(), time.process_time(), 0
        while time.perf_counter() - begin < seconds:
            encoder.embed(texts, layers="top")
            count += words
        wall, used = time.perf_counter() - begin, time.process_time() - cpu
        before = service.cpu_seconds()
        outcome = asyncio.run(closed_loop(service.port, requests, BULK_CLIENTS, seconds))
        server = service.cpu_seconds() - before
        found.append(
            {
                "embed_words_per_s": count / wall,
                "http_words_per_s": outcome.words / (outcome.wall - outcome.client_cpu / torch.get_num_threads()),
                "embed_words_per_cpu_s": count / used,
                "http_words_per_cpu_s": outcome.words / server,
            }
        )
    best = {name: max(each[name] for each in found) for name in found[0]}
    shares = {
        "wall_ratio": best["http_words_per_s"] / best["embed_words_per_s"],
        "cpu_ratio": best["http_words_per_cpu_s"] / best["embed_words_per_cpu_s"],
    }
    rounded = {name: round(value) for name, value in best.items()} | {name: round(value, 3) for name, value in shares.items()}
    return rounded | {"within_bar": shares["wall_ratio"] >= RATIO_BAR}


def capacity(service: ServiceProcess, requests: list[Request], seconds: float) -> dict[str, Any]:
    asyncio.run(closed_loop(service.port, requests, CLIENTS, 2))
    return asyncio.run(closed_loop(service.port, requests, CLIENTS, seconds)).to_json()


def rate(service: ServiceProcess, requests: list[Request], per_second: float, seconds: float) -> dict[str, Any]:
    outcome = asyncio.run(constant_rate(service.port, requests, per_second, seconds))
    return {"sent_per_s": round(per_second, 1), **outcome.to_json(), "within_bar": set(outcome.statuses) == {200}}


def overload(service: ServiceProcess, requests: list[Request], per_second: float, seconds: float) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        begin = time.perf_counter()
        load = asyncio.create_task(constant_rate(service.port, requests, per_second, seconds))
        await asyncio.sleep(max(seconds - (time.perf_counter() - begin), 0))
        while (late := time.perf_counter() - begin) < seconds:
            await asyncio.sleep(seconds - late)
        end, probe = time.perf_counter(), Connection(service.port)
        while True:  # until one is answered, and quickly
            sent = time.perf_counter()
            status = await probe.ask(requests[0])
            if status == 200 and time.perf_counter() - sent < 0.5:
                break
            await asyncio.sleep(0.05)
        recovered = time.perf_counter() - end
        probe.close()
        outcome = await load
        refused = outcome.statuses.get(429, 0)
        good = refused > 0 and set(outcome.statuses) <= {200, 429} and recovered <= RECOVERY_BAR
        return {"sent_per_s": round(per_second, 1), **outcome.to_json(), "recovered_s": round(recovered, 2), "within_bar": good}

    return asyncio.run(run())


def memory(service: ServiceProcess, requests: list[Request], per_second: float, seconds: float) -> dict[str, Any]:
    """`seconds`: of the first measurement; the second comes after sixty times as many requests."""

    async def replay(count: int) -> None:
        waiting = iter(range(count))

        async def client() -> None:
            connection = Connection(service.port)
            for number in waiting:
                await connection.ask(requests[number % len(requests)])
            connection.close()

        await asyncio.gather(*(client() for _ in range(CLIENTS)))

    minute = int(per_second * seconds)
    asyncio.run(replay(minute))
    first = service.rss_anon()
    asyncio.run(replay(59 * minute))
    last = service.rss_anon()
    return {"first_mb": first, "last_mb": last, "requests": 60 * minute, "within_bar": last <= MEMORY_BAR * first}


def others(service: ServiceProcess) -> dict[str, Any]:
    """The longest waits of others while a request is hard to answer."""
    text = ["the", "bank", "of", "the", "river", "."] * 700
    hard = {"lists": Request.post("/v1/words", {"input": [[]] * 4_000_000}, 0), "long_text": single([text])[0]}
    easy = {"livez": Request(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", 0), "short": single([text[:6]])[0]}

    async def run(request: Request) -> dict[str, Any]:
        connections, waits = [Connection(service.port), Connection(service.port)], {name: [0.0] for name in easy}
        begin, load = time.perf_counter(), asyncio.create_task(connections[0].ask(request))
        await asyncio.sleep(0.2)  # until it is being read or computed
        while not load.done():
            for name, each in easy.items():
                sent = time.perf_counter()
                await connections[1].ask(each)
                waits[name].append(time.perf_counter() - sent)
        status, seconds = await load, time.perf_counter() - begin
        for connection in connections:
            connection.close()
        longest = {f"longest_{name}_s": round(max(each), 2) for name, each in waits.items()}
        return {"status": status, "seconds": round(seconds, 2), "asked": len(waits["short"]) - 1, **longest}

    return {name: asyncio.run(run(request)) for name, request in hard.items()}


def peer(model: str, service: ServiceProcess, texts: list[list[str]], seconds: float) -> dict[str, Any]:
    lines = [" ".join(text) for text in texts]
    ours = [Request.post("/v1/embeddings", {"input": [line]}, 1, "application/json") for line in lines]
    theirs = [Request.post("/embed", {"input": [line]}, 1, "application/json") for line in lines]
    found: dict[str, Any] = {}
    names = {"same_model": model}
    if importlib.util.find_spec("sentence_transformers") is not None:
        names["sentence_transformers"] = f"{OTHER}{model}"
    for peer_name, given in names.items():
        with ServiceProcess([sys.executable, "-m", "benchmarks.service_peer", given]) as other:
            for clients in (1, 8, 64):
                for name, process, requests in (("polyseme", service, ours), (peer_name, other, theirs)):
                    asyncio.run(closed_loop(process.port, requests, clients, 1))
                    cpu = process.cpu_seconds()
                    outcome = asyncio.run(closed_loop(process.port, requests, clients, seconds))
                    each = len(outcome.seconds) / max(process.cpu_seconds() - cpu, 0.01)
                    told = outcome.to_json() | {"requests_per_cpu_s": round(each, 1)}
                    found[f"{peer_name}: {name}, {clients} clients"] = told
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="en")
    parser.add_argument("--seconds", type=float, default=30, help="length of each measurement")
    parser.add_argument("--rounds", type=int, default=3, help="of the ratio")
    parser.add_argument("--only", default=",".join(PARTS), help="what to measure")
    parser.add_argument("--memory-seconds", type=float, default=60, help="a minute of requests, replayed as fast as they go")
    parser.add_argument("--texts", type=int, default=1024)
    options = parser.parse_args()
    wanted, texts = options.only.split(","), sentences(options.texts)
    requests, seconds = single(texts), options.seconds
    result: dict[str, Any] = vars(options) | {"threads": torch.get_num_threads()}
    with polyseme_serve(options.model) as service:
        similar = Request.post("/v1/similar", {"word": "river"}, 1, "application/json")
        asyncio.run(Connection(service.port).ask(similar))  # what is computed after loading is there
        if "ratio" in wanted:
            result["ratio"] = ratio(options.model, service, texts, seconds, options.rounds)
        most = capacity(service, requests, min(seconds, 30))
        result["capacity"] = most
        if "rate" in wanted:
            result["rate"] = rate(service, requests, 0.8 * most["requests_per_s"], seconds)
        if "overload" in wanted:
            result["overload"] = overload(service, requests, 3 * most["requests_per_s"], min(seconds, 30))
        if "memory" in wanted:
            result["memory"] = memory(service, requests, 0.8 * most["requests_per_s"], options.memory_seconds)
        if "others" in wanted:
            result["others"] = others(service)
        if "peer" in wanted:
            result["peer"] = peer(options.model, service, texts, min(seconds, 30))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
