"""The chain of the consent ledger for people: its verifications (`checks`), and it as a file
(`export`).
"""
