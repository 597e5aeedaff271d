"""People and their access: roles, log-in, second factor, sessions, single sign-on, invitations.

django-allauth does the protocols; `logins` limits the guesses, counted by `guess_limits`. Other
packages ask `roles` for permissions, and import `acting`, `adapters`, `guess_limits`,
`invitations`, `pages`, `sessions`, `single_use` and `urls`.
"""
