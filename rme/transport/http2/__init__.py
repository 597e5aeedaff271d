"""HTTP/2 (RFC 9113), one connection to a host and many requests in flight on it.

Only the package's `connections` and `scheduler` import from here.

Why it is our own: libcurl's HTTP/2 and the best Rust client take three to four times the CPU a
request, and do not report which requests the server cannot have processed. The figures are in
docs/benchmarks.md and come from `make bench ARGS=engines`.
"""
