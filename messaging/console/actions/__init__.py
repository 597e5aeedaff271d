"""Bulk actions: what a person orders for many deliveries or suppressions, done in slices.

Other packages use `bulk_actions` (start, stop, do), `action_pages` and `tasks`.
"""
