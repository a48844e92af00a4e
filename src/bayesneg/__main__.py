"""``python -m bayesneg``: the command line."""

from bayesneg.cli import main

if __name__ == "__main__":
    main()
