"""People and their access: roles, log-in, second factor, sessions, single sign-on, invitations.

django-allauth does the protocols, and `limits` limits the guesses. Other packages ask `roles` for
permissions, and import `acting`, `adapters`, `invitations`, `limits`, `pages`, `sessions` and
`urls`.
"""
