"""The settings that join cells to the service; `rme.settings` takes them over in a cell."""

from rme import fixed_settings

INSTALLED_APPS = [*fixed_settings.INSTALLED_APPS, "rme.cells"]
PLACES = "rme.cells.placements.Placements"
AFTER_MIGRATIONS = ["rme.cells.moving.begin_sequences"]
ANY_HOST_PATHS = ["/cell/owner", "/cell/organizations", "/cell/log-out", "/cell/pauses"]
(_templates,) = fixed_settings.TEMPLATES
_options = _templates["OPTIONS"]
_processors = [*_options["context_processors"], "rme.cells.people.elsewhere.context"]
TEMPLATES = [{**_templates, "OPTIONS": {**_options, "context_processors": _processors}}]
