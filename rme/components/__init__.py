"""The parts that the console's pages are made of, as template tags.

`tags` has one tag for each part; its template is in templates/components/. Every template has the
tags without `{% load %}`. `style_guide` shows all parts, on a page that exists in DEBUG alone.
"""
