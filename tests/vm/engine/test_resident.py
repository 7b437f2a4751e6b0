"""A process that reads for long keeps its size. `tests/bars/04_7` selects this by `-k rss`."""

from typing import Final

import pytest

from tests.vm.engine.bench import Bench

pytestmark = [pytest.mark.vm, pytest.mark.bar]

READS: Final = 20_000
WARM_SAMPLES: Final = 2  # a tenth of the reads: until caches and free lists have what they keep
TOLERANCE: Final = 0.01


@pytest.mark.parametrize("transport", ["rdma"])
def test_rss_is_flat_over_twenty_thousand_reads(bench: Bench, transport: str) -> None:
    done = bench.run("resident", bench.url(transport), str(READS), limit_s=600)

    first, *later = done["resident_kib"][WARM_SAMPLES:]
    change = max(abs(one - first) for one in later) / first
    print(
        f"{transport}: {done['reads']} reads of 4 KiB at {done['reads_a_second']} a second; RSS {first} KiB, "
        f"at most {100 * change:.2f} % off that later"
    )
    assert done["reads"] >= READS
    assert done["errors"] == []
    assert change <= TOLERANCE
