"""Whole controllers under faults, from fixed seeds. `python -m tests.simulation.controller_rounds` plays more."""

import pytest

from tests.seeds import examples, sampled
from tests.simulation.controller_rounds import Rounds

SEEDS = 24
PARTS = 4


@pytest.mark.long
@pytest.mark.parametrize("part", sampled(range(PARTS), PARTS))
def test_seeds(part):
    """Nothing acknowledged is lost, one node decides in an epoch, and after healing all images and logs are the
    same."""
    for seed in range(part, max(PARTS, examples(SEEDS)), PARTS):
        Rounds(seed).play()
