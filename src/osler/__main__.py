"""`python -m osler`."""

from osler.cli import main

if __name__ == "__main__":
    main()
