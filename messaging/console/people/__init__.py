"""People: contacts, suppressions, and a person's page with its reachability and history.

Other packages use `names` and `reachability`; `urls` uses `routes`.
"""
