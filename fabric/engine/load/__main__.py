"""`python3 -m fabric.engine.load`: the agent on standard input and output."""

import sys

from fabric.engine.load.agent import main

if __name__ == "__main__":
    sys.exit(main())
