"""Sending one message by hand: a person, a published template, a preview with its route.

Other packages use `send_page`.
"""
