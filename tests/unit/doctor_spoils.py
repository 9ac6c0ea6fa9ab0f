"""Ways to spoil one thing of a healthy stack, for the doctor to name."""

from kai_fleet.isolation import vcluster_rights

from tests.unit.doctor_samples import (
    Lab,
    Spoil,
    as_sent,
    bounds,
    deployment,
    event,
    meta,
    pod,
)

# What is done; then the check, and what its subject, its cause and its fix have in them.
Case = tuple[Spoil, str, str, str, str]


def add(**pods_or_events):
    def spoil(lab: Lab) -> None:
        for kind, items in pods_or_events.items():
            lab.ml[kind] = [*lab.ml[kind], *items]

    return spoil


def waiting(name="w", text="", **more):
    """A pod of KAI without a node, and the event that a scheduler left at it."""
    made = pod(name, **more)
    group = {"metadata": meta(f"pg-{name}", "default")}
    return add(pods=[made], podgroups=[group], events=[event(made, text)] if text else [])


def edit(kind, name, *path, value, where="ml"):
    def spoil(lab: Lab) -> None:
        here = lab.named(kind, name, where)
        for key in path[:-1]:
            here = here.setdefault(key, {}) if isinstance(here, dict) else here[key]
        here[path[-1]] = value

    return spoil


def gone(kind, name, where="ml"):
    return lambda lab: lab.drop(kind, name, where)


def both(*spoils):
    def spoil(lab: Lab) -> None:
        for one in spoils:
            one(lab)

    return spoil


def of_version(version):
    def spoil(lab: Lab) -> None:
        lab.settings["teams"]["ml"]["scheduler"]["version"] = version

    return spoil


def inside_runs(version):
    """KAI of that version inside, with what it brings."""
    from kai_fleet.releases import kai

    def spoil(lab: Lab) -> None:
        of_version(version)(lab)
        lab.ml["deployments"] = [deployment(name, version) for name in kai(version).deployments]

    return spoil


def by_hand(queue):
    return {"metadata": meta(queue), "spec": {"resources": {}}}


OF_ML = {"app": "vcluster", "release": "ml"}


def scheduling(**keys):
    return lambda lab: lab.settings["teams"]["ml"]["scheduler"].update(keys)


def in_host_mode():
    """KAI and its queues on the host, and a team whose pods it schedules."""
    lab = Lab()
    team = lab.settings["teams"]["ml"]
    lab.settings |= {"kai": {"version": "v0.16.8"}, "queues": team.pop("queues")}
    team |= {"scheduler": {"mode": "host"}, "queue": "train"}
    kinds = ("deployments", "services", "endpointslices", "configs", "schedulingshards", "queues")
    for kind in (*kinds, "validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        lab.host[kind], lab.ml[kind] = lab.ml[kind], []
    for queue in lab.host["queues"]:
        gpu = queue["spec"]["resources"]["gpu"]
        gpu["limit"] = {"serve": 2, "train": 4}.get(queue["metadata"]["name"], -1)
    lab.ml["pods"] = []
    role = lab.named("clusterroles", "kai-fleet-vcluster-ml", "host")
    role["rules"] = as_sent(vcluster_rights.on_host(sees_nodes=False))
    space = lab.named("namespaces", "team-ml", "host")
    space["metadata"]["annotations"] = bounds(lab.settings)
    return lab
