"""The router: one address in front of several cells. `python -m rme.router` runs `__main__`.

It keeps nothing but caches, knows no database, and imports neither Django nor an app. A request
takes one way through `application`: `heads` reads it, `bodies` keeps or streams its body, `routing`
says what its cell is found by, `owners` finds the cell, and `cells` calls it. `refusals` are the
answers of the router's own.
"""
