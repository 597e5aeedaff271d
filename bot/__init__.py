"""The bot integration service: look-ups and creates for chat bots, by API key.

Other packages use `bot.urls` only.
"""
