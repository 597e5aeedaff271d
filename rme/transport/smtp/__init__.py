"""SMTP (RFC 5321). Only the package's `connections` imports from here:
`connection` and `pool`.

libcurl speaks SMTP too, but it blocks all other requests while it waits for the reply to a message,
and it reuses a connection whose last reply never came: the next mail would get that reply.
"""
