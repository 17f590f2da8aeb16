"""Files of a broker that are damaged in every way: what they hold is served rightly, or the start is refused and names
the file."""

import pytest

from tests import seeds
from tests.simulation import damage


@pytest.mark.long
@pytest.mark.parametrize("kind", seeds.sampled(sorted(damage.KINDS), 9))
def test_damaged_files(kind):
    outcomes = dict(damage.run([20_260_101], [kind]))
    assert outcomes, "files of this kind are there"
    assert not [row for row in outcomes.items() if row[1] not in (damage.SERVED, damage.REFUSED)]
