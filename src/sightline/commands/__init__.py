"""One file per `sightline` command; the table of them is in `sightline/cli.py`."""
