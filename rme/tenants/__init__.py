"""Organizations, and the access of people and programs to them.

The Django app `tenants`, whose tables are in `models`. Five packages have its subjects:
`organizations`, `audit`, `access` (people), `oauth` (programs) and `imports` (files into lists).
`admin` has the base classes of all admin pages, and the pages of the app's own tables.
"""
