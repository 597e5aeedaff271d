"""Requests of people for a data export or an erasure: recorded, carried out, answered in time.

`requests` has the records and what a person decides about them, `answers` carries them out.
"""
