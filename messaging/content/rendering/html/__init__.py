"""HTML: where a variable stands in it, which URLs it may hold, and its plain text.

The rest of `rendering` uses `places`, `plain_text` and `url_schemes`.
"""
