"""SMTP (RFC 5321). Only the package's `connections` imports from here:
`connection` and `pool`.

Why it is our own (`make bench ARGS=engines`, docs/benchmarks.md): a mail alone takes 34 µs of CPU,
by libcurl 66 (1.9 times) and by smtplib 76 (2.2 times). From row to outcome it takes 193 µs, by
libcurl 203 (1.05 times) and by smtplib 269 (1.40 times). That is below the 1.5 times that code of
our own has to reach: this is an exception to that rule, because neither library can serve. libcurl
blocks all other requests while it waits for the reply to a message, and it reuses a connection
whose last reply never came: the next mail would get that reply. smtplib sends one mail after the
other. Of a lost connection neither tells whether the server can have the mail.
"""
