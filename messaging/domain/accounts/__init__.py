"""Which provider accounts take a send.

Other packages use:

- `routing`: which accounts may take a send, and in which order
- `admission`: whether an account takes sends now, and which sends may go
"""
