"""`python -m aftercheck_worker.cli`: how one command starts another with the same interpreter."""

from __future__ import annotations

from aftercheck_worker.cli.application import main

if __name__ == "__main__":
    main()
