"""Filters of the list of messages, which are also what actions and pauses are ordered for.

Other packages use `message_filter` (the form, and what it asks for) and `saved_filters`.
"""
