"""Check the records of many random models; print each disagreement, shrunk to the statements that cause it.

``python benchmarks/coverage/random_models.py --count 20000 --first 0``
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))  # its random_models, not this file

from random_check import disagreements
from random_models import Program, make, shrink


def check(program: Program) -> list[str]:
    """Return what a record says otherwise than the truth, an exception of the package included."""
    try:
        return disagreements(program)
    except Exception as error:  # noqa: BLE001 - it is what is looked for
        return [f"{type(error).__name__}: {error}"]


def main() -> int:
    """Check the models of a range of seeds; the exit status is 1 where one disagrees."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    wrong = 0
    for seed in range(options.first, options.first + options.count):
        program = make(seed)
        found = check(program)
        if found:
            wrong += 1
            kind = found[0][:20]
            small = shrink(program, lambda other, kind=kind: any(each[:20] == kind for each in check(other)))  # type: ignore[misc]
            print(f"seed {seed}: {check(small)[0]}\n{small.source}", flush=True)
    print(f"{wrong} of {options.count} random models disagree")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
