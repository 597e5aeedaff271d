"""How people get into the console: log-in, second factor, sessions, single sign-on, invitations.

django-allauth does the protocols; `rme.tenants.logins` limits the guesses. Other packages import
`urls`,
`pages`, `acting_pages`, `factor_secrets`, `invitations` and `sessions`.
"""
