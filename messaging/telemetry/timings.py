"""The histograms of a message's way after its acceptance. They name no organization."""

from rme.core.telemetry.meters import Histogram

TIME_TO_PROVIDER = Histogram(
    "rme_time_to_provider_seconds",
    "From acceptance, or from the time a message is scheduled for, until a provider took it.",
    ["channel", "priority"],
    (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0, 14400.0),
)
PROVIDER_SECONDS = Histogram(
    "rme_provider_seconds",
    "From the hand-over of an attempt until its outcome, by kind of provider.",
    ["provider", "outcome"],
    (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0),
)
WEBHOOK_SECONDS = Histogram(
    "rme_webhook_seconds",
    "How long requests to webhook endpoints took; the result is `ok`, a class of status or `none`.",
    ["result"],
    (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0),
)
