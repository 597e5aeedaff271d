"""Running the service on one machine: embedded engines and one process tree.

`rme.web`, `rme.workers` and the settings use `backoff`, `forks`, `places`, `process` and
`programs`.

Imports neither Django nor any app: it runs before there is a database.
"""
