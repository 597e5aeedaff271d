"""People: whether a person can be reached, what happened to them, and what can be done.

Other packages use `person_page`, `entries_in_test` and `reachability`.
"""
