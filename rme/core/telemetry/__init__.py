"""What the service reports of itself: histograms, the state of its processes, and traces.

- `histograms`: how long things took, summed up over all processes
- `request_times`: histograms of requests
- `process_gauges`: processes, their memory and their database connections
- `tracing`: traces by OpenTelemetry, off unless `TRACING` is set; `spans`: what they consist of
"""
