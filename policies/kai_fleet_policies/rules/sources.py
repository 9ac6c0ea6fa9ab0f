"""Where charts and images come from: `chart`, and the images and registries in chart values."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from kai_fleet.releases import DEFAULT_VCLUSTER, sources
from kai_fleet.releases.sources import InvalidReferenceError, KnownSources, in_any
from kai_fleet_policies.model.cluster import HOST, ClusterModel
from kai_fleet_policies.model.installed import Chart
from kai_fleet_policies.rules.rule import (
    Findings,
    Judged,
    Subject,
    advisory,
    each_kai,
    each_vcluster,
    mandatory,
)

# Keys and variables are recognized by their names, so that those of a newer chart are seen as well.
_NAMES_IMAGE = re.compile(r"image|registry|repository|mirror|^repo$|artifact|speaker|bundle")
_NAMES_NO_IMAGE = re.compile(r"pull(policy|secrets?)|clearimagestatus")
_NAMES_TAG = re.compile(r"(tag|digest|version)$")
_FLAG = re.compile(r"-.*(image|registry|repository)", re.DOTALL)
_BARE = re.compile(r"[a-z0-9]+([._-]+[a-z0-9]+)*(:[\w.-]+)?")
_HOST = re.compile(r"[^/]*[.:][^/]*/|localhost/")
# Manifests for the inside of a vCluster name the images of its users.
_OF_USERS = ("experimental.deploy.vcluster.manifests", "snapshots")
# How long passwords live that a cloud gives to an account of this name.
_LIFETIMES = {
    "AWS": "twelve hours",
    "oauth2accesstoken": "one hour",
    "00000000-0000-0000-0000-000000000000": "three hours",
}
_NOT_NAMED = "is from a place that the platform does not name as a source"


def installed_charts(cluster: ClusterModel) -> Judged[Chart]:
    """The charts that are installed in a cluster: its own, then those of its KAI and vClusters.

    Those inside of vClusters are not read. None of the host's KAI in a team's own stack.
    """
    for chart in cluster.charts:
        yield chart, Subject(chart.subject, "", chart.path)
    for kai, subject in each_kai(cluster):
        yield Chart(kai.chart, kai.values, names=("kai-scheduler",), version=kai.version), subject
    for team, subject in each_vcluster(cluster):
        version = team.version or DEFAULT_VCLUSTER
        if isinstance(version, str):
            version = version.removeprefix("v")
        vcluster = Chart(
            team.chart,
            team.values,
            home="ghcr.io",
            repository="loft-sh",
            names=("vcluster",),
            version=version,
        )
        yield vcluster, subject


def _of_stack_file(cluster: ClusterModel) -> Judged[Chart]:
    """The charts that a stack file has installed, on the host and inside vClusters.

    None of another program: whoever may change that can run anything.
    """
    if cluster.name == HOST and (cluster.declared or cluster.platform_stack):
        yield from installed_charts(cluster)
        for team in cluster.teams:
            yield from installed_charts(team.inside)


@mandatory("sources-known", "critical", _of_stack_file)
def sources_known(cluster: ClusterModel, installed: Chart, subject: Subject) -> Findings:
    """Charts and images come from where the release tables and kai-fleet:sources say.

    A chart is installed with the platform's rights, and an image of the platform's parts runs
    beside every team: one line of a pull request would put somebody else's program there.
    """
    # A finding for the chart, and one for each value. A chart of None is that of the release table.
    # What is UNKNOWN, all values too, is passed over: a stack file has no such values.
    owner = " of the platform's stack" if cluster.platform_stack else ""
    chart = installed.chart
    reason = None
    if isinstance(chart, str):
        reason = _elsewhere(sources.chart_place, chart, cluster.sources.chart_places)
    if reason is not None:
        yield subject.at("chart").refuse(
            f"has a chart which {reason}",
            "drop it, the release table says where the chart is; or have the location of a mirror"
            f" (oci://… or https://…) written in kai-fleet:sources.charts{owner}. Packages in a"
            " directory are installed with KAI_FLEET_CHARTS, a variable of who runs the update",
        )
    for leaf in _leaves(_Value("", installed.values)):
        reason = _why_refused(leaf, cluster.sources, installed)
        if reason is None:
            continue
        keys = [key for key in (installed.values_key, leaf.key) if key]
        yield subject.at(*keys).refuse(
            f"has {leaf.key}, which {reason}",
            "drop it for the images of the release table, write a tag such as v1.2.3 where it is"
            f" one, or have its registry written in kai-fleet:sources.images{owner}",
        )


def _written_sources(cluster: ClusterModel) -> Judged[KnownSources]:
    """Each place in kai-fleet:sources, as the only one besides those of the release tables."""
    for number, chart in enumerate(cluster.sources.charts):
        path = f"kai-fleet:sources.charts[{number}]"
        yield KnownSources(charts=(chart,)), Subject("source", chart, path)
    for number, image in enumerate(cluster.sources.images):
        path = f"kai-fleet:sources.images[{number}]"
        yield KnownSources(images=(image,)), Subject("source", image, path)


@advisory("sources-used", "low", _written_sources)
def sources_used(cluster: ClusterModel, source: KnownSources, subject: Subject) -> Findings:
    """Each place in kai-fleet:sources is that of a chart or an image in the stack file.

    The key only allows places: a mirror that is written nowhere else is not used, and charts and
    images still come from their projects.
    """
    if not cluster.declared or cluster.grants:
        return  # teams with stacks of their own may use a place there
    # It is used if with it alone less is refused than with none; a mirror counts in neither.
    if _count_refusals(cluster, source) != _count_refusals(cluster, KnownSources()):
        return
    fix = "drop it"
    if not cluster.sources.mirror:
        registry = subject.name.rpartition("://")[2].removesuffix("/charts")
        fix = f"write kai-fleet:mirror: {registry}, by which all do, or drop it"
    yield subject.warn("allows a place from which no chart and no image comes", fix)


def _count_refusals(cluster: ClusterModel, allowed: KnownSources) -> int:
    """How many findings sources-known has with these sources alone, and the release tables'."""
    return len(list(sources_known.check(replace(cluster, sources=allowed))))


def _accounts(cluster: ClusterModel) -> Judged[str]:
    """The user of each account of a registry; the subject's path is the account's key."""
    for path, user in cluster.registry_users.items():
        yield user, Subject("account", user, path)


@advisory("registry-account-lasts", "medium", _accounts)
def registry_account_lasts(cluster: ClusterModel, user: str, subject: Subject) -> Findings:
    """Accounts of registries have passwords that last.

    Amazon's ECR gives passwords of twelve hours to the user AWS, Google's registries tokens of one
    hour to oauth2accesstoken, Azure's tokens of three to a user of zeros. An update writes them
    into Secrets once; later no pod that starts, and no chart, is pulled.
    """
    lifetime = _LIFETIMES.get(user)
    if lifetime is not None:
        yield subject.warn(
            f"has a password that lives {lifetime}; afterwards nothing is pulled with it",
            "let nodes pull by a role of their own and drop the account, or mirror the images where"
            " an account has a password that lasts; else set a new one and run the update more"
            " often than that",
        )


def _elsewhere(place_of: Callable[[str], str], name: str, places: Iterable[str]) -> str | None:
    """Why a chart, image or registry is refused, to complete "has X, which".

    None if its place, by `place_of`, is in `places`. Else it is no plain name, or is elsewhere. The
    text shows nothing of the name, which may have a password.
    """
    try:
        location = place_of(name)
    except InvalidReferenceError as error:
        return str(error)
    return None if in_any(location, places) else _NOT_NAMED


@dataclass(frozen=True)
class _Value:
    """A value of a chart, with its dotted key; the key "" stands for all values.

    Args:
        name: The last step of the key in small letters, only those from a to z; "" in a list.
        siblings: The mapping that it is in, with its variable as a key; empty in a list.
        below_image: A key above names images.
        in_list: It is in a list, or a mapping in one has it, where a bare name is no image of the
            chart's own registry.
    """

    key: str
    value: object
    name: str = ""
    siblings: Mapping[str, object] = field(default_factory=dict)
    below_image: bool = False
    in_list: bool = False

    @property
    def is_or_is_below_image(self) -> bool:
        """Whether its key, or one above, names images."""
        return self.below_image or bool(_NAMES_IMAGE.search(self.name))


def _leaves(above: _Value) -> Iterator[_Value]:
    """The values at any depth that are no mapping and no list, null and UNKNOWN too; or `above`.

    Those that `_values_of_mapping` leaves out are left out. An element has the key of its list.
    """
    if isinstance(above.value, Mapping):
        for value in _values_of_mapping(above, above.value):
            yield from _leaves(value)
    elif isinstance(above.value, list | tuple):
        for element in above.value:
            names_image = above.is_or_is_below_image
            yield from _leaves(_Value(above.key, element, below_image=names_image, in_list=True))
    else:
        yield above


def _values_of_mapping(above: _Value, mapping: Mapping[str, object]) -> Iterator[_Value]:
    """The values that `mapping`, the value of `above`, has itself: those below are not read.

    Without pull policies and what users run inside a vCluster. A mapping at `chart` is one value
    with the name `repo`: the location of that chart. A variable of a container has its value at
    `value` and, once more, at a key with the variable's name.
    """
    siblings = _with_variable(mapping)
    for step, value in siblings.items():
        key = f"{above.key}.{step}".lstrip(".")
        name = re.sub(r"[^a-z]", "", str(step).lower())
        if key.startswith(_OF_USERS) or _NAMES_NO_IMAGE.search(name):
            continue
        if name == "chart" and isinstance(value, Mapping):
            yield _Value(key, _chart_inside(value), "repo")
        else:
            yield _Value(key, value, name, siblings, above.is_or_is_below_image, above.in_list)


def _with_variable(values: Mapping[str, object]) -> Mapping[str, object]:
    """`{name: X, value: Y}`, a variable of a container, has Y as the value of a key X, too.

    Other mappings are unchanged.
    """
    variable = values.get("name")
    if isinstance(variable, str) and "value" in values:
        return {**values, variable: values["value"]}
    return values


def _chart_inside(chart: Mapping[str, object]) -> str:
    """The location of a chart that a vCluster installs inside: `REPO/NAME`; "" without either."""
    steps = [chart.get("repo"), chart.get("name")]
    return "/".join(str(step).rstrip("/") for step in steps if step)


def _why_refused(leaf: _Value, known: KnownSources, installed: Chart) -> str | None:
    """Why a value is refused, to complete "has X, which"; the first case decides.

    None if it names nothing, or something in a known place. Only texts are judged, and null at a
    key that names images. The chart's own registry and repository complete a value where only one
    of the two is written.
    """
    value = str(leaf.value or "")
    # Whether the key says that the value is an image, a registry or a repository.
    names_image = _NAMES_IMAGE.search(leaf.name) is not None
    if leaf.below_image and leaf.name in ("name", "url"):
        names_image = True
    is_text = isinstance(leaf.value, str)
    if not is_text and not (leaf.value is None and names_image):
        return None
    if leaf.name in ("repo", "bundle"):
        return _elsewhere(sources.chart_place, value, known.chart_places) if value else None
    if "manifests" in leaf.name:
        return "has manifests, in which no image is looked at"
    if names_image:
        return _why_image_refused(leaf, value, known, installed)
    if _NAMES_TAG.search(leaf.name):
        if sources.TAGS.fullmatch(value):
            return None
        return "is no tag and no sha256 digest, and may continue the image's name"
    if _FLAG.match(value.strip()):
        return "is a flag that names an image"
    if leaf.below_image and value:
        return _elsewhere(sources.image_place, value, known.image_places)
    return None


def _why_image_refused(
    leaf: _Value,
    value: str,
    known: KnownSources,
    installed: Chart,
) -> str | None:
    """Why the value of a key that names images is refused, to complete "has X, which".

    `value` is "" for null. None if it is in a known place; if it is empty and not at a registry or
    a repository; if it is a registry that is judged with the repository beside it; and for a bare
    name of an image outside of lists, which is in the chart's own registry. A name without a host
    at `repository` is judged below the registry beside it; without one, below the chart's own.
    """
    is_registry = leaf.name.endswith(("registry", "mirror"))
    if not value:
        if is_registry or leaf.name == "repository":
            return "is empty, so that the name beside it may lead anywhere"
        return None
    if leaf.name == "registry" and installed.repository:
        if isinstance(leaf.siblings.get("repository"), str):
            return None  # judged with the repository
        value = f"{value}/{installed.repository}"
    elif leaf.name == "repository" and not _HOST.match(value):
        registry = leaf.siblings.get("registry", installed.home) or ""
        value = f"{registry}/{value}".removeprefix("/")
    elif _BARE.fullmatch(value) and not leaf.in_list and not is_registry:
        return None  # relative to the chart's own registry
    place_of = sources.registry_place if is_registry else sources.image_place
    return _elsewhere(place_of, value, known.image_places)
