"""The parts that the console's pages are made of, as template tags.

`tags` has one tag for each part; its template is in templates/components/. Every template has the
tags without `{% load %}`. `list_tags` has the tags of lists, whose tables come from `tables`.
`style_guide` shows all parts, on a page that exists in DEBUG alone.
"""
