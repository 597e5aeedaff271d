"""Filters of the list of messages, which are also what actions and pauses are ordered for.

Other packages use `message_filter` (the form, and what it asks for) and `saved_filters`; other
lists use `filter_form`, the base of their forms, and `list_page`, which shows them.
"""
