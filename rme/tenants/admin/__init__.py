"""Admin pages of organizations, people, applications and keys. Importing them registers them.

Admin modules of other packages build on `actions`, `base`, `choices`, `lists`, `pages`, `keys`,
`programs`, `shown_once`, `form_fields` and `offered` (`LongSelect`); `role_page` says what each
role may do.
"""

from rme.tenants.admin import applications, keys, pages

__all__ = ["applications", "keys", "pages"]
