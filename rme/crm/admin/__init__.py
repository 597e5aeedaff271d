"""Admin pages of the embedded records and of platforms. Importing this registers them.

Other packages extend the pages of `pages`.
"""

from rme.crm.admin import pages, platforms

__all__ = ["pages", "platforms"]
