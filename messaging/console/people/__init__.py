"""People: contacts, suppressions, and a person's page with its reachability and history.

Other packages use `names` and `reachability`; `urls` uses `contact_list`, `contact_pages`,
`entries_in_test`, `person_page`, `person_peek` and `suppression_pages`.
"""
