"""Expressions in the indexes of deliveries, which `messaging.store.lookups` repeats to use them."""

from django.db.models import BigIntegerField, F, Func, Q

OTHER = ~Q(id=F("message_id"))
"""Deliveries that do not have their message's id; the condition of `delivery_of_other`."""


class Hash(Func):
    """The hash of a text; PostgreSQL's, so that it is the same in an index and a condition."""

    function = "hashtextextended"
    template = "%(function)s(%(expressions)s, 0)"
    arity = 1
    output_field = BigIntegerField()
