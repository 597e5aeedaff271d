"""HTTP/1.1, by libcurl. Only the package's `connections` imports from here:
`exchange`, `results` and `reused_connections`.
"""
