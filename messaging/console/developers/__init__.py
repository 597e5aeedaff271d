"""Pages for developers: webhook deliveries, the log of API requests, programs and their secrets.

`urls` uses `compose_pages`, `endpoint_pages`, `program_pages`, `request_pages` and
`webhook_pages`.
"""
