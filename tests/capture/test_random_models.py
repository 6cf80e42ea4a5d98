"""Random models: their records agree with what perturbation, plain hooks and a count of operators say."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

from random_check import disagreements  # noqa: E402 - only where torch is
from random_models import make  # noqa: E402

MODELS, GROUPS = 300, 10


@pytest.mark.parametrize("group", range(GROUPS))
def test_records_of_random_models_agree_with_the_truth(group: int) -> None:
    for seed in range(group, MODELS, GROUPS):
        program = make(seed)
        assert not disagreements(program), f"seed {seed}\n{program.source}"
