"""SMTP (RFC 5321). Only the package's `connections` imports from here:
`connection` and `pool`.

Why it is our own (`make bench ARGS=engines`, docs/benchmarks.md): a mail alone takes 44 µs of CPU,
by libcurl 222 (5.1 times) and by smtplib 244 (5.6 times). From row to outcome it takes 211 µs, by
libcurl 285 (1.35 times) and by smtplib 290 (1.37 times). That is below the 1.5 times that code of
our own has to reach: this is an exception to that rule, because neither library can serve. libcurl
blocks all other requests while it waits for the reply to a message, and it reuses a connection
whose last reply never came: the next mail would get that reply. smtplib sends one mail after the
other. Of a lost connection neither tells whether the server can have the mail.
"""
