"""Filters of the list of messages, which are also what actions and pauses are ordered for.

Other packages use `message_filter` (the form, and what it asks for), `saved_filters`, and
`filter_form`, the base of the forms of other lists.
"""
