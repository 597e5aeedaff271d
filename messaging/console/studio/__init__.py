"""The template studio: the list of templates, and a page for each to write, try and publish it.

Other packages use `variants` (the address of a template's page), `template_list`, `template_page`
(the page and its actions), `schema_page` (variables as JSON Schema), `comparison` (two versions),
`template_files` (import and export), `translations` (XLIFF out and in), `live` (what the page's
script asks for while a person types), `written` (the names of a form's fields) and `partial_pages`
(texts that templates share).
"""
