"""The operations home: what needs a person, and the figures of one organization.

Other packages use:

- `page`: the context of the admin's first page
"""
