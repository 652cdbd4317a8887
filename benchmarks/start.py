"""Time from the start of a program to its first embedded sentence, and of `import torch` alone.

python -m benchmarks.start
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.workload import turns

TORCH = "import torch"
FIRST = "import polyseme; polyseme.load().embed(['We sat on the bank of the river.'])"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds

    def process(code: str) -> None:
        subprocess.run([sys.executable, "-c", code], check=True)

    process(FIRST)  # to fill the file cache
    found = turns({"torch": lambda: process(TORCH), "first": lambda: process(FIRST)}, rounds)
    print(f"import torch                            {found['torch']:6.2f} s")
    print(f"the shipped model and one sentence      {found['first']:6.2f} s  {found['first'] - found['torch']:+.2f} s")


if __name__ == "__main__":
    main()
