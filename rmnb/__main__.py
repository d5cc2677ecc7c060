"""``python -m rmnb``: the command line."""

from rmnb.cli.main import main

if __name__ == "__main__":
    main()
