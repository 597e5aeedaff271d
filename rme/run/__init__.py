"""Running the service on one machine: embedded engines and one process tree.

Imports neither Django nor any app: it runs before there is a database.
"""
