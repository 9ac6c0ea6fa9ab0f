"""The doctor about Helm's records that somebody else wrote; that it is mended: test_records.py."""

from dataclasses import replace

from kai_fleet.releases.helm_record import Forged
from kai_fleet_cli.doctor.checks import vclusters
from kai_fleet_cli.waiting.finding import Health
from tests.unit.doctor_samples import Lab, meta

FORGED = (Forged("sh.helm.release.v1.ml.v9", "has a hook, Job steal"), Forged("b", "names Node x"))


def looked(records, spoil=lambda lab: None):
    lab = Lab()
    spoil(lab)
    look = lab.look()
    return replace(look, teams={"ml": replace(look.teams["ml"], records=records)})


def test_each_record_is_named_with_why_and_one_command():
    (found,) = vclusters.check_records(looked(FORGED))
    assert found.health is Health.BROKEN
    assert "Secret sh.helm.release.v1.ml.v9 has a hook, Job steal; Secret b names" in found.cause
    assert "`kubectl -n team-ml delete secret sh.helm.release.v1.ml.v9 b`" in found.fix
    assert "`make up STACK=lab`" in found.fix


def test_records_that_are_well_are_said_to_be_and_others_are_not_spoken_of():
    (well,) = vclusters.check_records(looked(()))
    assert well.health is Health.OK
    assert list(vclusters.check_records(looked(None))) == []


def test_nobody_is_told_to_apply_what_a_forged_record_says():
    def without(lab):
        lab.drop("statefulsets", "ml", where="host")
        lab.host["services"] = [{"metadata": meta("ml", "team-ml")}]

    (fix,) = [it.fix for it in vclusters.check(looked((), without)) if "not there" in it.cause]
    assert "get manifest ml" in fix
    (fix,) = [it.fix for it in vclusters.check(looked(FORGED, without)) if "not there" in it.cause]
    assert "get manifest" not in fix and "helm-record" in fix
