"""`python -m incrowd` is `incrowd`, for whoever has no scripts on the path."""

from incrowd.cli import main

if __name__ == "__main__":
    main()
