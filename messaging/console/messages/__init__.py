"""Messages: their list, the page of each, and sentences that explain what became of them.

Other packages use `message_list`, `message_page` and `explanations`.
"""
