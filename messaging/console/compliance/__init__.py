"""Consent and compliance: the ledger's entries and chain, and requests for exports and erasures.

`urls` uses `routes`.
"""
