"""The REST API: one module (or package) per resource, with its output, description and views.

Inputs are defined in the package that uses them. A view parses its input, makes one call of the
domain, and answers with its result. Only `urls` is used from outside.
"""
