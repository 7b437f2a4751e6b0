"""Every sample taken over without SSH; a few over SSH, as `python -m tests.brownfield` does with all of them."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from fabric.errors import UnsupportedFeatureError
from fabric.nos import catalog
from fabric.workflow.design import design
from tests.brownfield.imported import imported_diff
from tests.brownfield.judge import Row, judged, subject_of
from tests.brownfield.quick import plan_for, problems_of, variants
from tests.brownfield.samples import Form, Language, Sample, samples
from tests.brownfield.table import document, explanation, failures, figure
from tests.conftest import reference_path

pytestmark = [pytest.mark.reference, pytest.mark.no_cover]  # long and alike: the unit tests show coverage


@cache
def _all() -> tuple[Sample, ...]:
    folder = reference_path() / "samples"
    return samples(folder) if folder.is_dir() else ()


SAMPLES = [pytest.param(one, id=one.name.rpartition("/")[2]) for one in _all()]
NOT_REFUSED = [one for one in SAMPLES if "voq_chassis" not in str(one.id)]
OVER_SSH = [one for one in SAMPLES if any(name in str(one.id) for name in ("tor_no_qos", "avd_qos_profiles"))]


def test_what_a_sample_is_its_content_decides(reference: Path) -> None:
    assert Counter((one.form, one.language) for one in _all()) == {
        (Form.COMPLETE, Language.CONFIG_DB): 3,
        (Form.FRAGMENT, Language.CONFIG_DB): 7,
        (Form.COMPLETE, Language.KLISH): 1,
        (Form.COMPLETE, Language.EOS): 5,
    }


@pytest.mark.parametrize("sample", NOT_REFUSED)
def test_a_sample_is_taken_over_and_given_back(sample: Sample, reference: Path) -> None:
    part, _, _, every = variants(subject_of(sample))
    for _, subject, adopt in (part, every):
        assert problems_of(subject, adopt=adopt) == ()


@pytest.mark.parametrize("sample", NOT_REFUSED)
def test_an_import_of_what_was_provisioned_changes_nothing(sample: Sample, reference: Path, tmp_path: Path) -> None:
    subject = subject_of(sample)
    change = design(plan_for(subject, adopt=sample.nos == "eos")[1].switches[0], subject.text)
    after = catalog.get(sample.nos).apply(subject.text, change.payload)
    found = imported_diff(subject, after, tmp_path)
    count = len(subject.wanted.ports)
    assert (found.would, found.expressed) == ("empty", f"{count} of {count}")


def test_what_is_refused_is_refused_by_name_before_anything_is_typed(reference: Path) -> None:
    (chassis,) = [one for one in _all() if "voq_chassis" in one.name]
    for _, subject, adopt in variants(subject_of(chassis)):
        with pytest.raises(UnsupportedFeatureError, match="VOQ chassis"):
            problems_of(subject, adopt=adopt)


@pytest.mark.slow
@pytest.mark.parametrize("sample", OVER_SSH)
def test_a_sample_is_taken_over_by_the_verbs(sample: Sample, reference: Path, tmp_path: Path) -> None:
    row = judged(subject_of(sample), tmp_path, imported_diff)
    assert failures((row,)) == (), row
    assert row.is_provisioned is not bool(explanation(row))
    assert sample.name in document((row,), ())


def test_a_refusal_counts_only_with_the_sentence_that_explains_it(reference: Path) -> None:
    (chassis,) = [one for one in _all() if "voq_chassis" in one.name]
    (plain,) = [one for one in _all() if "tor_no_qos" in one.name]
    said = "switch1: QoS of a VOQ chassis (keys host|asic|port|queue) is read, not written"
    explained, other, complete = (
        Row(chassis, "", refused=said),
        Row(chassis, "", refused="?"),
        Row(plain, "", refused=said),
    )
    assert explanation(explained).startswith("VOQ key form host|asic|port|queue")
    assert (explanation(other), explanation(complete)) == ("", "")
    assert failures((explained, other, complete)) == (chassis.name, plain.name)
    assert figure((explained,)).startswith("1 samples: 0 provisioned and taken back, 1 refused")
