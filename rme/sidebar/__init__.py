"""The console's menu and what else stands around its pages.

`menu` lists the entries, `kinds` says what a page of an entry is, and `shell` chooses what a person
may open. `frame` is the context processor that gives templates their `shell`. `search_pages` has
the search, for `rme.urls`; `commands` lists what can be done from there.
"""

from rme.sidebar.shell import Shell, frame, shell

__all__ = ["Shell", "frame", "shell"]
