"""People: whether a person can be reached, what happened to them, and what can be done.

Other packages use `contact_merge`, `names` and `reachability`.
"""
