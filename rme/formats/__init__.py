"""How the admin and the console write days and times: as `Django` looks them up, by language."""
