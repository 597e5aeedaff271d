"""The first step of accepting: the facts from which the plans of a set follow.

The step is in `reading`; `sources`, `variables` and `options` read one kind of facts each.
"""
