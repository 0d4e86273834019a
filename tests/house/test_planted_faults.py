"""The faults can still be planted; `planted_faults.py` asks what catches them."""

import pytest
from house import ROOT
from planted_faults import Fault, read_faults


def test_sixty_faults_and_more_each_apply_once_and_name_tests_that_are_there():
    faults = read_faults()
    offenders = []
    for fault in faults:
        path = ROOT / fault.file
        source = path.read_text(encoding="utf-8") if path.is_file() else ""
        if (count := len(fault.matches(source))) != 1:
            offenders.append(f"{fault.name}: {count} places in {fault.file}")
        elif fault.planted(source) == source:
            offenders.append(f"{fault.name} changes nothing")
        files = [ROOT / test.partition("::")[0] for test in fault.tests]
        offenders += [f"no {file}" for file in files if not file.is_file()]
    assert offenders == []
    assert len({fault.name for fault in faults}) == len(faults) >= 60


@pytest.mark.parametrize(
    "source",
    [
        "y = attend(scores, mask[:, None])",
        "y = attend(\n    scores,\n    mask[:, None],\n)",
        "y=attend(scores,mask[:,None])",
    ],
)
def test_a_fault_is_planted_however_the_lines_are_broken(source):
    fault = Fault("", "", "attend(scores, mask[:, None])", "attend(scores)", "", ())
    assert fault.planted(source).replace(" ", "") == "y=attend(scores)"
    assert fault.matches("y = cross_attend(scores, mask[:, None])") == []
