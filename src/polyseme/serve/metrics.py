"""What Prometheus collects: requests, failures, the queue, batches, and where the time goes.

With several workers, prometheus-client keeps the numbers of each process in files of the folder PROMETHEUS_MULTIPROC_DIR, and
`/metrics` sums them, whichever worker answers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_WORDS = tuple(float(2**power) for power in range(0, 17, 2))


class Metrics:
    """The numbers of one process."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._of_endpoint: dict[tuple[str, int], tuple[Counter, Histogram, Counter | None]] = {}
        self.requests = Counter("polyseme_requests", "Requests answered.", ["endpoint", "status"], registry=registry)
        self.failures = Counter(
            "polyseme_failures", "Requests answered with an error.", ["endpoint", "status"], registry=registry
        )
        self.request_seconds = Histogram(
            "polyseme_request_seconds", "Time of a request.", ["endpoint"], buckets=_SECONDS, registry=registry
        )
        self.open_requests = Gauge(
            "polyseme_open_requests", "Requests being answered.", registry=registry, multiprocess_mode="livesum"
        )
        self.queue_words = Gauge(
            "polyseme_queue_words", "Words that wait to be computed.", registry=registry, multiprocess_mode="livesum"
        )
        self.words = Counter("polyseme_words", "Words computed.", registry=registry)
        self.batch_words = Histogram("polyseme_batch_words", "Words of a batch.", buckets=_WORDS, registry=registry)
        self.queue_seconds = Histogram(
            "polyseme_queue_seconds", "Time that a text waited.", buckets=_SECONDS, registry=registry
        )
        self.compute_seconds = Histogram(
            "polyseme_compute_seconds", "Time of computing a batch.", buckets=_SECONDS, registry=registry
        )

    def batch_done(self, words: int, waited: Sequence[float], seconds: float) -> None:
        """A batch is computed."""
        self.words.inc(words)
        self.batch_words.observe(words)
        self.compute_seconds.observe(seconds)
        for each in waited:
            self.queue_seconds.observe(each)

    def queue_changed(self, words: int) -> None:
        """So many words wait now."""
        self.queue_words.set(words)

    def request_done(self, endpoint: str, status: int, seconds: float) -> None:
        """A request is answered."""
        key = (endpoint, status)
        if key not in self._of_endpoint:  # few: endpoints are ours, and statuses, too
            name = (endpoint, str(status))
            failures = self.failures.labels(*name) if status >= 400 else None
            self._of_endpoint[key] = (self.requests.labels(*name), self.request_seconds.labels(endpoint), failures)
        requests, request_seconds, failures = self._of_endpoint[key]
        requests.inc()
        request_seconds.observe(seconds)
        if failures is not None:
            failures.inc()

    def text(self) -> bytes:
        """All numbers in Prometheus' text format; of all workers, where there are several."""
        registry = self._registry
        if os.environ.get(FOLDER_VARIABLE):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        return bytes(generate_latest(registry))
