"""The console: pages about people and messages inside the admin site.

They call the functions that the REST API calls and have no rules of their own. Each page is of one
organization, which stands in its address.

`team`, `compliance`, `developers`, `routing`, `people`, `studio`, `sending`, `messages`, `actions`
and `filters` are packages; each imports only what stands after it here. Other packages use `urls`,
`access` and `search` (for the sidebar), `home` (the admin's first page), `new_organization`
(the form of its first steps), `wording` (codes and sentences in words) and the task of `actions`.
"""
