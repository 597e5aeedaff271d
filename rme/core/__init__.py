"""What all apps are built on. It imports no app and has no models.

- `http`: errors in the API's shape, middleware, JSON, the ASGI gateway, pagination
- `db`: PostgreSQL: statements of the hot path, locks, partitions, availability
- `redis`: connections, rate limits, heartbeats, hints
- `process`: what runs around tasks and requests: worker, threads, memory, errands
- `environment`: parts of the environment that `rme.settings` does not read in a line
- `provider`: the contract that email, SMS and push providers keep
- `absence`: whether a service is away, and who may try it
- the other modules are value types and small parsers
"""
