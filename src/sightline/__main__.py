"""`python -m sightline`: the command, where its script is not on the path."""

from sightline.cli import main

if __name__ == "__main__":
    main()
