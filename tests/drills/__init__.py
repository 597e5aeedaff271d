"""Drills on servers of their own: a primary that dies, and a restore to a moment.

They stand beside the tests because they start the service and read its accounts as tests do:
`make drill-failover`, `make drill-restore`.
"""
