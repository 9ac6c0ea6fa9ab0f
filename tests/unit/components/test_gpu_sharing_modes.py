"""How a KAI shares GPUs: a switch or a mode, in the words that the chart of its version reads."""

import pulumi
import pytest

from kai_fleet.isolation.bounds import pod_bounds
from kai_fleet.kai.chart_values import kai_values
from kai_fleet.kai.kai_scheduler import KaiScheduler
from kai_fleet.names import KAI_SCHEDULER
from kai_fleet.ownership import deployed
from kai_fleet.ownership.deployed import Deployed, resource_key
from kai_fleet.releases import kai
from kai_fleet.values import UNKNOWN
from kai_fleet_cli.plan.recorder import record
from kai_fleet_policies.adapters.from_resources import clusters
from kai_fleet_policies.model.installed import Kai
from kai_fleet_stack.declared import clusters_of
from kai_fleet_stack.settings.loading import load
from kai_fleet_stack.settings.team_stack import Facts
from kai_fleet_stack.validation import validate
from tests.attacks.objects import pod
from tests.chart_keys import unknown_keys
from tests.policy_evaluation import account, creation, refusals
from tests.unit.policies.samples import cluster, open_question, resource
from tests.unit.stack.stack_arguments import arguments, settings_of
from tests.unit.stack.test_program import CLUSTER, HOST, ML

CHART = "oci://ghcr.io/kai-scheduler/kai-scheduler/kai-scheduler"


def on_host(mode, version="v0.18.0", **more):
    return {**HOST, "kai": {"version": version, "gpuSharing": mode}, **more}


def sharing(mode):
    """The arguments of a KAI in a mode."""
    off = mode == "Disabled"
    return {"gpu_sharing": not off} if off else {"gpu_sharing_mode": mode}


def judged(raw, rule="gpu-sharing-mode"):
    return {p.path: (p.level.name, p.message) for p in validate(raw).problems if p.check == rule}


@pytest.mark.parametrize(
    ("version", "mode", "values"),
    [
        ("v0.17.0", "NonMemoryEnforced", {"global": {"gpuSharing": True}}),
        (
            "v0.16.9",
            "HamiCore",
            {
                "global": {"gpuSharing": True},
                "binder": {"plugins": {"hamicore": {"enabled": True}}},
            },
        ),
        ("v0.18.0", "NonMemoryEnforced", {"global": {"gpuSharingMode": "NonMemoryEnforced"}}),
        ("v0.18.0", "Disabled", {"global": {"gpuSharingMode": "Disabled"}}),
        (
            "v0.18.6",
            "NvFractions",
            {
                "global": {"gpuSharingMode": "NvFractions", "nvFractions": {"set": True}},
                "admission": {"gpuFractionRuntimeClassName": ""},
            },
        ),
    ],
)
def test_a_mode_is_written_as_the_chart_of_that_version_reads_it(version, mode, values):
    found = kai_values(kai(version, untested=True), sharing(mode))
    for section, desired in values.items():
        assert found[section].items() >= desired.items()
    assert ("gpuSharing" in found["global"]) == (version < "v0.18")
    assert unknown_keys("kai", version, found) == []


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ({}, "NonMemoryEnforced"),
        ({"gpuSharing": True}, "NonMemoryEnforced"),
        ({"gpuSharing": False}, "Disabled"),
        ({"gpuSharing": "HamiCore"}, "HamiCore"),
        ({"values": {"global": {"gpuSharingMode": "HamiCore"}}}, "HamiCore"),
    ],
)
def test_a_stack_file_says_a_switch_or_a_mode(written, mode):
    raw = {"cluster": CLUSTER, **HOST, "kai": {"version": "v0.18.0", **written}}
    assert clusters_of(settings_of(raw))[0].scheduler.sharing == mode


def test_what_is_no_mode_is_reported_with_those_that_are():
    found = {
        mistake.path: mistake.message
        for mistake in load({"cluster": CLUSTER, **on_host("Hami")}).mistakes
    }
    assert "'NonMemoryEnforced', 'HamiCore'" in found["kai-fleet:kai.gpuSharing"]


def test_a_team_stack_learns_the_mode_of_the_hosts_kai():
    facts = Facts.of(settings_of({"cluster": CLUSTER, **on_host("HamiCore")}))
    assert facts.kai and facts.kai.gpu_sharing == "HamiCore"


def test_a_mode_that_the_version_has_not_is_refused_with_one_that_has():
    reported = judged({"cluster": CLUSTER, **on_host("HamiCore", "v0.14.7")})
    level, message = reported["kai-fleet:kai.gpuSharing"]
    assert level == "MANDATORY"
    assert "from v0.16 on, and the version is v0.14.7; write version: v0.18.0" in message
    assert message.endswith("or mode: NonMemoryEnforced")


@pytest.mark.parametrize("mode", ["HamiCore", "NvFractions"])
def test_an_enforcing_mode_is_warned_about(mode):
    found = judged({"cluster": CLUSTER, **on_host(mode)})
    level, message = found["kai-fleet:kai.gpuSharing"]
    assert (level, "make what docs/workloads.md says of it" in message) == ("ADVISORY", True)
    assert judged({"cluster": CLUSTER, **on_host("NonMemoryEnforced")}) == {}


def of_team(mode, **more):
    scheduler = {"mode": "virtual", "version": "v0.18.0", "gpuSharing": mode}
    return {"cluster": CLUSTER, "teams": {"ml": {**ML, "scheduler": scheduler, **more}}}


def test_no_vcluster_holds_the_operator_of_nvfractions():
    level, message = judged(of_team("NvFractions"))["kai-fleet:teams.ml.scheduler.gpuSharing"]
    assert level == "MANDATORY"
    assert "write mode: HamiCore or NonMemoryEnforced" in message


@pytest.mark.parametrize(
    ("before", "after", "grouped"),
    [("v0.16.8", "v0.18.0", True), ("v0.18.0", "v0.18.6", False), ("v0.16.8", "v0.17.0", False)],
)
def test_the_preview_of_a_switch_says_what_v0_18_groups(before, after, grouped, monkeypatch):
    output: list[str] = []
    monkeypatch.setattr(pulumi.log, "info", lambda text, *_: output.append(text))
    state = Deployed({resource_key(KAI_SCHEDULER, "ml-kai-release"): before})
    monkeypatch.setattr(deployed, "read", lambda: state)
    args = {"version": after, "untested": True, "context": "lab"}
    record("lab", {}, program=lambda: KaiScheduler("ml", args) and None)
    (line,) = output
    assert line.endswith("a Deployment made after it is one PodGroup") == grouped


MEMORY = "nvidia.com/container.main.gpu-memory.request"
DEVICES = "nvidia.com/container.main.gpus.devices"


def test_the_guard_lets_memory_be_requested_where_the_host_enforces_it_and_no_device():
    def denied(key: str, **rules: bool) -> bool:
        request = creation("pods", "team-dev", account("team-dev", "vc-dev"))
        bounds = pod_bounds("dev", {"scheduler": "host", **rules})
        body = {"kind": "Pod", **pod("dev", annotations={key: "2Gi"})}
        return bool(list(refusals("annotations", body, request, bounds)))

    assert denied(MEMORY)
    assert not denied(MEMORY, nv_fractions=True)
    assert denied(DEVICES, nv_fractions=True)


@pytest.mark.parametrize("key", [MEMORY, "kai.scheduler/container.main.gpu-memory.portion.limit"])
@pytest.mark.parametrize(("before", "after"), [("2Gi", "80Gi"), (None, "80Gi")])
def test_memory_is_requested_when_a_pod_is_made_and_never_changed(key, before, after):
    """KAI has counted it by then, and the GPU's other memory may be another team's."""
    bounds = pod_bounds("dev", {"scheduler": "host", "host_kai": True, "nv_fractions": True})
    request = creation("pods", "team-dev", account("team-dev", "vc-dev")) | {"operation": "UPDATE"}
    was, now = (
        {"kind": "Pod", **pod("dev", annotations={key: item} if item else {})}
        for item in (before, after)
    )
    (output,) = refusals("owners", now, request, bounds, before=was)
    assert f"has {key} not as KAI left it" in output
    by_kai = request | {"userInfo": account("kai-scheduler", "binder")}
    assert list(refusals("owners", now, by_kai, bounds, before=was)) == []


def test_no_pod_of_a_team_leaves_its_queue_as_a_background_pod():
    """KAI v0.18 counts such a pod in no queue, so the GPU limit of the team's does not hold."""
    bounds = pod_bounds("dev", {"scheduler": "none", "host_kai": True})
    request = creation("pods", "team-dev", account("team-dev", "vc-dev"))
    was, now = (
        {"kind": "Pod", **pod("dev", labels=item)}
        for item in ({}, {"kai.scheduler/background": "true"})
    )
    change = request | {"operation": "UPDATE"}
    (created,) = refusals("owners", now, request, bounds)
    (changed,) = refusals("owners", now, change, bounds, before=was)
    assert "has kai.scheduler/background not as KAI left it" in created
    assert "has kai.scheduler/background not as KAI left it" in changed
    alone = pod_bounds("dev", {"scheduler": "none"})
    assert list(refusals("owners", now, request, alone)) == []


def test_only_teams_of_a_host_in_that_mode_may_request_it():
    def allowed(mode):
        return arguments({"cluster": CLUSTER, **on_host(mode)}).namespace("nlp")["nv_fractions"]

    assert (allowed("NvFractions"), allowed("HamiCore")) == (True, False)


@pytest.mark.parametrize(
    ("version", "values", "mode"),
    [
        ("v0.17.0", {}, "Disabled"),
        ("v0.17.0", {"gpuSharing": True}, "NonMemoryEnforced"),
        ("v0.18.6", {}, "NonMemoryEnforced"),
        ("v0.18.6", {"gpuSharingMode": "HamiCore", "gpuSharing": False}, "HamiCore"),
        ("v0.18.6", {"nvFractions": {"set": True}}, "NvFractions"),
        ("v0.18.6", {"gpuSharingMode": UNKNOWN}, UNKNOWN),
        (None, {}, UNKNOWN),
    ],
)
def test_the_pack_reads_how_another_programs_kai_shares(version, values, mode):
    props = {"chart": CHART, "version": version, "values": {"global": values}}
    (judged,) = clusters([resource("kubernetes:helm.sh/v3:Release", "kai", props)])
    assert judged.kai[0].sharing == mode


def test_a_mode_that_is_not_known_yet_is_an_open_question():
    unknown = cluster(kai=(Kai("v0.18.6", sharing=UNKNOWN),))
    assert "its mode of GPU sharing is known" in open_question("gpu-sharing-mode", unknown).message
