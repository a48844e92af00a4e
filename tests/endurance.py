"""Long tests of trust; each prints what it found and fails where something does not hold.

    python tests/endurance.py kills [--count 200]       killed at random moments and resumed: the same result
    python tests/endurance.py damages [--count 1000]    damaged files: the right answer, or one sentence
    python tests/endurance.py inputs [--count 100000]   generated bad tables and specs: a result, or one sentence
    python tests/endurance.py loop [--seconds 3600]     train, resume, evaluate, recommend, serve, report: memory

``--seed`` makes other ones. Short runs of all four are part of the test suite (tests/test_endurance.py).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from enduring import damages, inputs, kills, loop

PARTS = {"kills": 200, "damages": 1_000, "inputs": 100_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=(*PARTS, "loop"))
    parser.add_argument("--count", type=int, help="kills, damages or inputs")
    parser.add_argument("--seconds", type=float, default=3_600, help="of the loop")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    count = asked.count or PARTS.get(asked.part, 0)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        if asked.part == "kills":
            failed = kills.run(place, count, asked.seed)
        elif asked.part == "damages":
            failed = damages.run(place, count, asked.seed)
        elif asked.part == "inputs":
            failed = inputs.run(place, count, asked.seed)
        else:
            failed = loop.run(place, asked.seconds)
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
