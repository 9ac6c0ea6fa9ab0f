"""From which versions a vCluster, and the Kubernetes in it, can go to which others."""

from kai_fleet.releases import KUBERNETES, VCLUSTER, minor_line, numbers_of, version_key

# Cause and fix, what to write, of a step that cannot be taken.
Refusal = tuple[str, str]


def vcluster_refusal(before: str, after: str) -> Refusal | None:
    """Why a vCluster cannot go from one version to another in one step.

    None if it can, and for the same version. Upgrades go one minor line at a time, and nobody knows
    which line comes before another major version. A downgrade, also within a line, is impossible:
    nothing undoes the state in the volume and Kubernetes' own storage versions. It is the first
    case.

    Raises:
        ValueError: A version has no major and minor number, and it is no downgrade.
    """
    step = f"{before} → {after}"
    stay = f"write {before}, or remove the team and add it again"
    if version_key(after) < version_key(before):
        return f"{step} is a downgrade, which vCluster does not support", stay
    major, minor = minor_line(before)
    new_major, new_minor = minor_line(after)
    if new_major != major:
        return f"{step} is a step to another major version, which is not tested", stay
    if new_minor - minor <= 1:
        return None
    next_line = f"v{major}.{minor + 1}"
    last_line = f"v{major}.{new_minor - 1}"
    skipped = next_line if last_line == next_line else f"{next_line} to {last_line}"
    in_next_line = [known for known in VCLUSTER if known.startswith(f"{next_line}.")]
    first = in_next_line[0] if in_next_line else f"a version of {next_line}"
    return (
        f"{step} skips {skipped}: vCluster goes one minor version at a time",
        f"write {first} first, then up line by line",
    )


def etcd_refusal(before: str, after: str) -> Refusal | None:
    """Why a vCluster with the chart's etcd cannot go from one version to another at once.

    None if it can: the etcd of each version of the table is new enough for the next. That of
    another version is not known.
    """
    release = VCLUSTER.get(after)
    first = release.etcd_after if release is not None else ""
    if not first or before in VCLUSTER or minor_line(before) == minor_line(after):
        return None
    return (
        f"{before} → {after} brings etcd v3.6, before which v3.5.20 or newer has to have run, and"
        f" the etcd of {before} is not known here",
        f"write {first} first",
    )


def host_refusal(vcluster: str, kubernetes: str, host: str) -> Refusal | None:
    """Why a Kubernetes does not work in a vCluster on a host of another one.

    None if it does, and for a vCluster that the table lacks.
    """
    release = VCLUSTER.get(vcluster)
    if release is None or not release.not_ready_below:
        return None
    bound = minor_line(release.not_ready_below)
    if minor_line(kubernetes) >= bound or minor_line(host) < bound:
        return None
    repaired = [name for name, each in VCLUSTER.items() if not each.not_ready_below]
    fix = f"write {repaired[0]}, which repairs it (one that runs goes there line by line)"
    if minor_line(release.kubernetes) >= bound:
        fix += f", or kubernetesVersion: {release.not_ready_below}.0"
    return (
        f"runs Kubernetes {kubernetes} on a host of {host}, where pods of one before"
        f" {release.not_ready_below} stay NotReady with vCluster {vcluster}",
        fix,
    )


def kubernetes_refusal(version: str, before: str | None, newest: str | None) -> Refusal | None:
    """Why a vCluster cannot run a version of Kubernetes. None if it can.

    An API server does not read what a newer one wrote, and Kubernetes goes up one minor version at
    a time (its policy of version skew). The first reason counts. All versions have to be like
    `v1.34.2`: this is not checked, and a text without numbers counts as the lowest version.

    Args:
        version: The version to run.
        before: The version that it runs now; None if unknown, or if there is no vCluster yet.
        newest: The newest version that its vCluster has; None if unknown, or to allow a newer one.
            Only its minor line bounds.

    Raises:
        ValueError: `before` has no major and minor number, and it is no downgrade.
    """
    # By numbers: a suffix is that of a vendor's image as well as of a release candidate.
    if before and numbers_of(version) < numbers_of(before):
        return (
            f"is {version} after {before}, and an older API server does not read what a newer one"
            " wrote",
            f"write {before}",
        )
    stays = before is not None and minor_line(version) == minor_line(before)
    if newest and minor_line(version) > minor_line(newest) and not stays:
        newest_line = newest.rpartition(".")[0]
        return (
            f"is {version}, and its vCluster has none after {newest_line}",
            f"write {_newest_step(before, newest)}, or add untested: true beside it to try it",
        )
    if before and minor_line(version) > _following(before):
        return (
            f"is {version} after {before}, and Kubernetes goes up one minor version at a time",
            f"write {_next(before)} first, then up one by one",
        )
    if not before and minor_line(version) < minor_line(KUBERNETES[0]):
        return (
            f"is {version}, and no vCluster has one before {KUBERNETES[0]}, nor the guards inside"
            " one before v1.30",
            f"write {newest or KUBERNETES[-1]}",
        )
    return None


def _newest_step(before: str | None, newest: str) -> str:
    """The newest version that a vCluster which runs `before` can go to in one step."""
    if not before:
        return newest
    if minor_line(before) < minor_line(newest):
        return _next(before)
    return before


def _following(version: str) -> tuple[int, ...]:
    """The major and minor number after those of a version."""
    major, minor = minor_line(version)
    return major, minor + 1


def _next(version: str) -> str:
    """What to write for the next minor version: one that vCluster has, or words for it."""
    following = _following(version)
    for known in KUBERNETES:
        if minor_line(known) == following:
            return known
    major, minor = following
    return f"one of v{major}.{minor}"
