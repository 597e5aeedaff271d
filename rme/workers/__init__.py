"""`python -m rme.workers`: a Celery worker for each queue, and what workers and beat are made of.

`rme.celery` names `beat`, `consumer` and `pool` to Celery; nothing else imports from here.
"""
