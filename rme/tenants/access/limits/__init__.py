"""Limits of guesses at secrets, and what may be used only once.

Other packages use:

- `guess_limits`: limits of guesses at passwords, codes and client secrets
- `logins`: limits of failed log-ins
- `single_use`: what may be used once
"""
