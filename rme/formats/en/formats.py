"""Days as 3 May 2026, times with seconds and the zone; no American order, whose days are read as
months elsewhere.
"""

DATE_FORMAT = SHORT_DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "j M Y, H:i:s e"
