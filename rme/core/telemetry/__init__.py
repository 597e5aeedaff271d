"""What the service reports of itself: metrics, the state of its processes, and traces.

- `meters`: counters, gauges and histograms; `metric_files`: where processes share them
- `request_times`: counters and histograms of requests
- `process_gauges`: processes, their memory and their database connections
- `tracing`: traces by OpenTelemetry, off unless `TRACING` is set; `spans`: what they consist of
"""
