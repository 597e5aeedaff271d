"""HTTP/2 (RFC 9113), one connection to a host and many requests in flight on it.

Only the package's `connections` and `scheduler` import from here: `pool` and `stream`.

Why it is our own (`make bench ARGS=engines`, docs/benchmarks.md): from row to outcome an APNs push
takes 121 µs of CPU, by libcurl's HTTP/2 189 (1.57 times) and by pyreqwest, a Rust client, 194 (1.61
times); a second run was 1.51 and 1.56 times. A request alone takes 21 µs, 65 and 80. libcurl shows
which requests a server cannot have processed only in its debug messages.
"""
