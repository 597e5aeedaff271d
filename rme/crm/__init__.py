"""The platform that holds an organization's records, behind one interface.

Other packages import `contacts`, `lookups`, `people`, `folding`, `models`, `presets`, `platforms`,
and from `connectors` the registry, `base` and `records`. `admin` has the pages that others extend.
"""
