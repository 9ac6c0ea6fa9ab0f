"""Ways of breaking the healthy stack of `doctor_samples`, one at a time or together."""

from collections.abc import Callable

from kai_fleet.releases import kai
from tests.unit.cli.doctor.doctor_samples import Lab, deployment, event, meta, pod

Spoil = Callable[[Lab], None]
# What is done; then `check | subject | words of its cause | words of its fix`.
Case = tuple[Spoil, str]


def add(where="ml", **objects):
    """Objects beside those that are there."""

    def spoil(lab: Lab) -> None:
        there = lab.host if where == "host" else lab.ml
        for kind, items in objects.items():
            there[kind] = [*there.get(kind, ()), *items]

    return spoil


def grouped(pod):
    """A pod, and the PodGroup that KAI makes for it."""
    about = pod["metadata"]
    group = {"metadata": meta(f"pg-{about['name']}", about["namespace"])}
    return add(pods=[pod], podgroups=[group])


def waiting(name="w", text="", **more):
    """A pod of KAI without a node, and the event that a scheduler left at it."""
    pending = pod(name, **more)
    return both(grouped(pending), add(events=[event(pending, text)] if text else []))


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


def set_to(name, value):
    """An attribute of the lab, or the objects of one kind."""

    def spoil(lab: Lab) -> None:
        where, _, kind = name.partition(".")
        if kind:
            getattr(lab, where)[kind] = value
        else:
            setattr(lab, where, value)

    return spoil


def without(*names):
    """Required objects that are not there."""
    return lambda lab: lab.gone.update(names)


def of_version(version):
    def spoil(lab: Lab) -> None:
        lab.settings["teams"]["ml"]["scheduler"]["version"] = version

    return spoil


def inside_runs(version):
    """KAI of that version inside, with what it brings."""

    def spoil(lab: Lab) -> None:
        of_version(version)(lab)
        lab.ml["deployments"] = [deployment(name, version) for name in kai(version).deployments]

    return spoil


def scheduling(**keys):
    return lambda lab: lab.settings["teams"]["ml"]["scheduler"].update(keys)


def host(kind, *path, value):
    return edit(kind, *path, value=value, where="host")


def crash(message):
    """The control plane's pod, whose container ended with a message."""
    labels = {"app": "vcluster", "release": "ml"}
    ended = {"lastState": {"terminated": {"message": message}}}
    control_plane = {
        "metadata": meta("ml-0", "team-ml", labels=labels),
        "spec": {},
        "status": {"phase": "Running", "containerStatuses": [ended]},
    }
    return both(host("statefulsets", "ml", "status", value={}), add("host", pods=[control_plane]))


def volume(text):
    """A volume of the control plane that waits, with the event that says why."""
    claim = {"metadata": meta("data-ml-0", "team-ml"), "spec": {}, "status": {"phase": "Pending"}}
    why = event(claim, text, "ProvisioningFailed", "PersistentVolumeClaim")
    not_ready = host("statefulsets", "ml", "status", value={})
    return both(not_ready, add("host", persistentvolumeclaims=[claim], events=[why]))
