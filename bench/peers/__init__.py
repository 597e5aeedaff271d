"""Other libraries, each sending alone: no database, no record of what became of a message.

Each program reads a job as JSON from its standard input and prints the seconds that it took: those
of the wall's clock and those of its own processor time. What comes before the first message (its
own start, the messages themselves, a connection) is not counted.
"""
