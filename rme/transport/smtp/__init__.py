"""SMTP (RFC 5321). Only the package's `connections` imports from here:
`connection` and `pool`.

Why it is our own (`make bench ARGS=engines`, docs/benchmarks.md): from row to outcome a mail takes
232 µs of CPU, by aiosmtplib 523 (2.26 times), which knows no pipelining. By libcurl it takes 297
(1.28 times) and by smtplib 342 (1.48 times). These two are below the 1.5 times that code of our own
has to reach: this is an exception to that rule, because neither can serve. libcurl blocks all other
requests while it waits for the reply to a message, and it reuses a connection whose last reply
never came: the next mail would get that reply. smtplib sends one mail after the other. Of a lost
connection neither tells whether the server can have the mail.
"""
