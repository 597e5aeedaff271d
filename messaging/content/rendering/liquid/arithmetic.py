"""Arithmetic of templates, in decimals: amounts come out as people compute them.

Like the reference (Shopify's `standardfilters.rb`), filters compute numbers as decimals and return
them as floats, whose text is the same up to 15 digits.
"""

from decimal import ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal

from liquid.exceptions import FilterArgumentError
from liquid.filter import math_filter, num_arg

Number = int | float
_CONTEXT = Context(prec=80, rounding=ROUND_HALF_UP)
"""Digits for the greatest number (31) and the most decimals (20) of a template."""


def _exact(number: Number) -> Decimal:
    """Return the decimal that a number's text shows, not its binary value."""
    return Decimal(str(number)) if isinstance(number, float) else Decimal(number)


def _divisor(argument: object, name: str) -> Number:
    number: Number = num_arg(argument, default=0)
    if number == 0:
        raise FilterArgumentError(f"{name}: can't divide by {number}", token=None)
    return number


@math_filter
def divided_by(number: Number, argument: object) -> Number:
    """Return the quotient; for whole numbers, rounded down to a whole number."""
    divisor = _divisor(argument, "divided_by")
    if isinstance(number, int) and isinstance(divisor, int):
        return number // divisor
    return float(_CONTEXT.divide(_exact(number), _exact(divisor)))


@math_filter
def modulo(number: Number, argument: object) -> Number:
    """Return the remainder of a division that rounds down: it has the divisor's sign."""
    divisor = _divisor(argument, "modulo")
    if isinstance(number, int) and isinstance(divisor, int):
        return number % divisor
    dividend, exact = _exact(number), _exact(divisor)
    quotient = _CONTEXT.divide(dividend, exact).to_integral_value(ROUND_FLOOR)
    return float(_CONTEXT.subtract(dividend, _CONTEXT.multiply(quotient, exact)))


@math_filter
def round_half_up(number: Number, digits: object = None) -> Number:
    """Return a number rounded to `digits` decimals, by default none; halves away from zero."""
    count = int(num_arg(digits, default=0))
    if isinstance(number, int) and count >= 0:
        return number
    exact = _exact(number)
    if not exact.is_finite():
        return int(number)  # raises, since it isn't finite
    rounded = exact.quantize(Decimal(1).scaleb(-count), context=_CONTEXT)
    return float(rounded) if count > 0 else int(rounded)
