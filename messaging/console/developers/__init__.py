"""Pages for developers: webhook deliveries, the log of API requests, programs and their secrets.

`urls` uses `routes`.
"""
