"""A running stack, and one wrong edit after the other: what a preview says, what `up` asks."""

import pytest
import yaml
from kubernetes import client

from kai_fleet.isolation.rights import VCLUSTER
from tests.engine import sandbox_commands
from tests.engine.product import cluster_roles, namespaces, queues
from tests.engine.sandbox_commands import keys, pids, typed, until

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def walk(one_team, place):
    """Runs a command on the stack file as an edit of the running stack's own leaves it."""
    file = one_team.product.file
    good = file.read_text()

    def run(edit, *command):
        document = yaml.safe_load(good)
        edit(document["config"])
        file.write_text(yaml.safe_dump(document))
        if not command:
            return None
        ran = sandbox_commands.fleet(one_team.sandbox, one_team.folder, *command, stack="sandbox")
        return ran.returncode, ran.stdout, ran.stderr

    yield run
    place.tenant = None  # its team is gone


def nothing(config):
    """The file of the running stack."""


def what_the_host_lacks(config):
    teams = config["kai-fleet:teams"]
    teams["ml"] |= {"gpus": 64, "isolation": {"level": "off"}}
    config["kai-fleet:isolation"] = {"volumeClasses": ["fasst"]}
    teams["late"] = {
        "scheduler": {"mode": "default"},
        "nodePool": {"kai-fleet/pool": "lat"},
        "gpus": 2,
        "vcluster": {"storageClass": "fasst"},
    }


def no_lab(config):
    del config["kai-fleet:teams"]["ml"]["queues"]["default"]["children"]["lab"]


def no_team(config):
    del config["kai-fleet:teams"]["ml"]


def another_name(config):
    config["kai-fleet:cluster"]["name"] = "another"


def a_login_without_tls(config):
    oidc = {"issuer": "http://login.example.com", "clientId": "kubernetes"}
    config["kai-fleet:vcluster"]["oidc"] = oidc


def volumes(cluster):
    """The namespaces whose claims have a volume."""
    found = client.CoreV1Api(cluster).list_persistent_volume().items
    return {entry.spec.claim_ref.namespace for entry in found}


def lost(shown):
    """The lines of what is lost, the last that a command prints of them."""
    _, heading, lines = shown.rpartition("Lost with this\n")
    return [line.strip() for line in lines.splitlines() if line.startswith("  ")] if heading else []


def agree(one_team, message):
    """Type the command that a refusal ends with."""
    command = message.rpartition("or run: ")[2]
    own = {**one_team.sandbox.env(), "KAI_FLEET_SANDBOX": str(one_team.sandbox.directory)}
    ran = typed(one_team.folder, command, **own)
    assert ran.returncode == 0, ran
    return ran.stdout


def test_no_wrong_edit_ends_a_running_stack_unasked(walk, one_team, host):
    inside = one_team.inside()
    work = client.CoreV1Api(inside)
    container = {"name": "main", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    for name in ("job-0", "job-1"):
        spec = {"schedulerName": "kai-scheduler", "containers": [container]}
        labels = {"kai.scheduler/queue": "lab"}
        pod = {"metadata": {"name": name, "labels": labels}, "spec": spec}
        work.create_namespaced_pod("default", pod)

    selector = {"kai-fleet/pool": "ml"}
    synced = {"schedulerName": "nobody", "containers": [container], "nodeSelector": selector}
    client.CoreV1Api(host).create_namespaced_pod(
        "team-ml", {"metadata": {"name": "synced"}, "spec": synced}
    )

    # A pool that no node has, more GPUs than nodes hold, a class that is absent.
    code, shown, _ = walk(what_the_host_lacks, "preview", "--details")
    assert code == 0, shown
    ahead, _, engine = shown.partition("Previewing update")
    assert "no node with these labels is Ready" in ahead
    assert "write labels that nodes have at kai-fleet:teams.late.nodePool" in ahead
    assert "StorageClass fasst" in ahead
    assert "team ml is granted 64" in ahead
    # Less isolation has the waits run again, which print their addresses only then.
    assert "[urn=urn:pulumi:sandbox::kai-fleet::pulumi:pulumi:Stack::" in engine
    assert "::ml-vcluster-inside-binding]" in engine
    assert " to delete" in engine
    assert " to replace" not in engine, engine

    # A queue that pods name.
    until(lambda: all(pod.spec.node_name for pod in work.list_namespaced_pod("default").items))
    code, shown, _ = walk(no_lab, "preview")
    queue = "ml: Queue lab goes: pods that name it are no longer scheduled"
    assert (code, lost(shown)[0]) == (0, f"{queue}; 2 pods run and 0 pods wait")
    assert not [line for line in shown.splitlines() if line.startswith(("broken", "the host"))]
    assert shown.splitlines()[-1].endswith("make preview STACK=sandbox DETAILS=1")
    code, shown, asked = walk(no_lab, "up")
    assert (code, lost(shown)) == (1, [f"{queue}; 2 pods run and 0 pods wait"])
    assert "Updating" not in shown
    assert asked.endswith("fleet up --stack sandbox --yes ml\n")
    assert "lab" in queues(inside)
    assert queue in lost(agree(one_team, asked))
    assert "lab" not in queues(inside)
    code, shown, _ = walk(nothing, "up")
    assert (code, "ml: Queue lab is created" in shown) == (0, True)

    # A team.
    code, shown, _ = walk(no_team, "preview")
    lines = shown.splitlines()
    (at,) = (number for number, line in enumerate(lines) if "has 1 mistake:" in line)
    assert "team ml: is deployed and not in the file any more" in lines[at + 1]
    assert (code, shown.count("[team-removal]")) == (1, 1)
    code, shown, asked = walk(no_team, "up")
    namespace = "ml: Namespace ml-namespace goes with its pods and volumes"
    assert code == 1
    assert f"{namespace}; 2 pods and 1 volume data-ml-0 5Gi" in lost(shown)
    assert "team-ml" in namespaces(host)

    # Another name for the cluster.
    for command in (["preview"], ["up", "--yes", "sandbox"]):
        code, shown, refused = walk(another_name, *command)
        assert (code, "Updating" in shown) == (1, False)
        assert "kai-fleet:cluster.name: cluster another: is not sandbox, the name of" in refused
        assert "write sandbox. To rename it destroy this stack first" in refused

    # A mistake in a key.
    code, shown, refused = walk(a_login_without_tls, "preview")
    heading, mistake = refused.splitlines()
    assert (code, heading) == (1, "error: the stack's configuration has 1 mistake:")
    assert mistake.startswith("  kai-fleet:vcluster.oidc.issuer: key issuer: is 'http://login.")
    assert "Previewing update" not in shown

    # The team after all, of which nothing is left.
    walk(no_team)
    shown = agree(one_team, asked)
    assert shown.index(" ml-release deleted ") < shown.index(" ml-namespace deleted ")
    assert "team-ml" not in namespaces(host)
    assert not [name for name in cluster_roles(host) if "ml" in name]
    rights = client.RbacAuthorizationV1Api(host).list_cluster_role().items
    assert f"{VCLUSTER}-ml" not in {right.metadata.name for right in rights}
    until(lambda: "team-ml" not in volumes(host))
    # KAI's CRDs, its shard, queues and the reservation namespace lived in the vCluster's own API.
    until(lambda: not [name for name in pids(one_team.sandbox) if "team-ml" in name])
    until(lambda: keys(one_team.sandbox, "/vclusters/team-ml.ml") == 0)
