"""Pages for recipients: preferences, unsubscribe, tracking; and the Web Push demo.

Other packages use `urls`, `tracking_urls` and `push_demo` (its views).
"""
