"""The authorization server: OAuth 2.0 for programs (RFC 6749 §4.4, 7523, 7009, 7662, 8414).

The rest of the project uses `tokens`, `assertions`, `keys` and `views`.
"""
