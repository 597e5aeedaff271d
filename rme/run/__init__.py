"""Running the service on one machine: embedded engines and one process tree.

`rme.workers` and the settings use `backoff`, `places` and `process`.

Imports neither Django nor any app: it runs before there is a database.
"""
