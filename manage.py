#!/usr/bin/env python
"""Django's command line for rme."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rme.settings")
    from django.conf import settings
    from django.core.management import execute_from_command_line

    _ = settings.DATABASES  # Django would run some commands although a setting is wrong
    execute_from_command_line(sys.argv)
