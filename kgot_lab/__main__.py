"""`python -m kgot_lab`: the command line."""

from kgot_lab.cli.app import main

if __name__ == "__main__":
    main()
