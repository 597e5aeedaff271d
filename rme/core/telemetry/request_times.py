"""How many requests were answered, and how long they took, for /metrics."""

from rme.core.telemetry.meters import Counter, Histogram

REQUESTS = Counter(
    "rme_requests_total", "Requests that were answered.", ["method", "path", "status"]
)
SECONDS = Counter(
    "rme_request_seconds_total", "Time spent on answering requests.", ["method", "path"]
)
REQUEST_SECONDS = Histogram(
    "rme_request_duration_seconds",
    "How long requests of programs took, by route.",
    ["method", "path"],
    (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
"""Not those of pages, which are many, nor of monitoring."""
ACCEPT_SECONDS = Histogram(
    "rme_accept_seconds",
    "How long requests took that were answered 202 and did not ask to wait, by route.",
    ["path"],
    REQUEST_SECONDS.bounds,
)
"""What is refused takes less time, and what waits (`Prefer`) as long as its caller asked for."""
