"""Messages: their list, the page of each, and sentences that explain their outcome.

Other packages use `message_list`, `message_page`, `message_peek` and `explanations`.
"""
