"""Time that passes in seconds: days of rows and jobs (`days`), and histories of one message's way
with faults, from seeds (`world`).
"""
