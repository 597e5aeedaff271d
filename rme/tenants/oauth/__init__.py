"""Programs: OAuth applications and their tokens (RFC 6749 §4.4, 7523, 7009, 7662, 8414), API keys.

Every REST call passes `authentication` (from a token to its organization), `routes` (the permission
that it needs) and `call_limits`. `permissions` has all permissions of programs, and the rights that
a person needs to grant them; `makers` the programs that may do more than their makers.
`applications` and `api_keys` issue credentials, `tokens` keeps tokens, `assertions` checks signed
ones, and `views` and `urls` are the authorization server.
"""
