"""What Prometheus reads at ``/metrics``."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

SECONDS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 6.0, 12.0, 30.0, 60.0, 300.0, 1800.0)


class Metrics:
    """One server's figures; labels are names that the server itself has given."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)  # memory and processor's time, on Linux
        self.requests = self._counter("requests", "Answers.", "route", "status")
        self.duration = self._histogram("request_seconds", "From request to answer.", "route")
        self.queue_wait = self._histogram(
            "queue_wait_seconds", "From a whole request to a free worker.", "model"
        )
        self.first_token = self._histogram(
            "time_to_first_token_seconds", "From a whole request to its first text.", "model"
        )
        self.work = self._histogram("work_seconds", "A worker's time for a request.", "model")
        self.audio = self._counter("audio_seconds", "Sound decoded.", "model")
        self.first_partial = self._histogram(
            "live_first_text_seconds", "Sound of an utterance up to its first text.", "model"
        )
        self.waiting = self._gauge("queue_length", "Requests that wait.")
        self.busy = self._gauge("workers_busy", "Workers at work.")
        self.live = self._gauge("live_streams", "Live streams.")
        self.uploading = self._gauge("uploads", "Requests whose body is coming in.")

    def text(self) -> bytes:
        """Return the figures in Prometheus's text format."""
        return generate_latest(self._registry)

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(name, about, labels, namespace="beamless", registry=self._registry)

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(name, about, namespace="beamless", registry=self._registry)

    def _histogram(self, name: str, about: str, *labels: str) -> Histogram:
        return Histogram(
            name, about, labels, namespace="beamless", registry=self._registry, buckets=SECONDS
        )
