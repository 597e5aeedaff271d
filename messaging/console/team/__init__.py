"""The people of an organization: who they are, invitations, and changes of their roles.

`urls` uses `team_page` and `member_pages`.
"""
