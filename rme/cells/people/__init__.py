"""One person in several cells: whose organizations the console shows, and handing a log-in over.

An account has a `person`, by which the accounts of one person in several cells know each other. An
email address would not do: an owner may invite any address, and use the link of the invitation. So
accounts are connected once, by a log-in to both of them. Other modules of the cells import
`answers`, `log_outs` and `pages`; the settings name `elsewhere`.
"""
