"""Consent and compliance: the ledger's entries and chain, and requests for exports and erasures.

`urls` uses `consent_list`, `ledger_page`, `request_list` and `request_page`.
"""
