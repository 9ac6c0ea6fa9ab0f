"""Where charts and images come from: `chart`, and the images and registries in chart values."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from kai_fleet.releases import DEFAULT_VCLUSTER, sources
from kai_fleet.releases.sources import InvalidReferenceError, KnownSources, in_any
from kai_fleet.values import items
from kai_fleet_policies.model.cluster import HOST, Chart, Cluster
from kai_fleet_policies.rules.kai import kais_and_inside
from kai_fleet_policies.rules.rule import Findings, Place, advisory, each_vcluster, mandatory, row

# Keys and variables are known by their names, so that one of a newer chart is seen as well.
_NAMES: Final = re.compile(r"image|registry|repository|mirror|^repo$|artifact|speaker|bundle")
_NO_NAMES: Final = re.compile(r"pull(policy|secrets?)|clearimagestatus")
_TAG: Final = re.compile(r"(tag|digest|version)$")
_FLAG: Final = re.compile(r"-.*(image|registry|repository)", re.DOTALL)
_BARE: Final = re.compile(r"[a-z0-9]+([._-]+[a-z0-9]+)*(:[\w.-]+)?")
_HOST: Final = re.compile(r"[^/]*[.:][^/]*/|localhost/")
# Manifests for the inside of a vCluster name the images of its users.
_USERS_OWN: Final = ("experimental.deploy.vcluster.manifests", "snapshots")
# How long passwords live that a cloud gives to an account of this name.
_LIFETIMES: Final = {
    "AWS": "twelve hours",
    "oauth2accesstoken": "one hour",
    "00000000-0000-0000-0000-000000000000": "three hours",
}
_NOT_NAMED: Final = "is from a place that the platform does not name as a source"


def installed_charts(cluster: Cluster) -> Iterable[tuple[Chart, Place]]:
    """What is installed of a chart."""
    for chart in cluster.charts:
        yield chart, Place(chart.subject, "", chart.path)
    for (kai, _), place in kais_and_inside(cluster):
        yield Chart(kai.chart, kai.values, names=("kai-scheduler",), version=kai.version), place
    for team, place in each_vcluster(cluster):
        of_vcluster = Chart(
            team.chart,
            team.values,
            home="ghcr.io",
            repository="loft-sh",
            names=("vcluster",),
            version=(team.version or DEFAULT_VCLUSTER).removeprefix("v"),
        )
        yield of_vcluster, place


def _sources(cluster: Cluster) -> Iterable[tuple[Chart, Place]]:
    """What a stack file has installed; who changes a program of another kind runs anything."""
    if cluster.name == HOST and (cluster.declared or cluster.platform):
        yield from installed_charts(cluster)


@mandatory("sources-known", "critical", _sources)
def sources_known(cluster: Cluster, installed: Chart, place: Place) -> Findings:
    """Charts and images come from where the release tables and kai-fleet:sources say.

    A chart is installed with the platform's rights, and an image of the platform's parts runs
    beside every team: one line of a pull request would put somebody else's program there.
    """
    where = " of the platform's stack" if cluster.platform else ""
    chart, places = installed.chart, cluster.sources.chart_places
    if chart is not None and (why := _elsewhere(sources.chart_place, chart, places)):
        yield place.at("chart").refuse(*row("source-of-chart", why=why, where=where))
    for leaf in _leaves(installed.values):
        if why := _wrong(leaf, cluster.sources, installed.home, installed.repository):
            yield place.at(*filter(None, (installed.values_key, leaf.key))).refuse(
                *row("source-of-image", key=leaf.key, why=why, where=where)
            )


@advisory("sources-used", "low")
def sources_used(cluster: Cluster) -> Findings:
    """Each place in kai-fleet:sources has a chart or an image that is written with it.

    The key allows places, and takes nothing from them: a mirror that only it names is not used,
    and charts and images come from their projects all the same.
    """

    def refused(**known: tuple[str, ...]) -> int:
        return len([*sources_known.check(replace(cluster, sources=KnownSources(**known)))])

    # Teams with stacks of their own may use it there.
    for kind in ("charts", "images") if cluster.declared and not cluster.grants else ():
        for number, name in enumerate(getattr(cluster.sources, kind)):
            if refused() == refused(**{kind: (name,)}):
                registry = name.rpartition("://")[2].removesuffix("/charts")
                which = "source-beside-mirror" if cluster.sources.mirror else "source-unused"
                yield Place("source", name, f"kai-fleet:sources.{kind}[{number}]").warn(
                    *row(which, registry=registry)
                )


@advisory("registry-account-lasts", "medium")
def registry_account_lasts(cluster: Cluster) -> Findings:
    """Accounts of registries have passwords that last.

    Amazon's ECR gives passwords of twelve hours to the user AWS, Google's registries tokens of one
    hour to oauth2accesstoken, Azure's tokens of three to a user of zeros. An update writes them
    into Secrets once; later no pod that starts, and no chart, is pulled.
    """
    for path, user in cluster.registry_users.items():
        if lifetime := _LIFETIMES.get(user):
            yield Place("account", user, path).warn(*row("account-ends", lifetime=lifetime))


def _elsewhere(place_of: Callable[[str], str], name: str, places: Iterable[str]) -> str | None:
    """What is wrong with a location; None where it leads to one of the places."""
    try:
        place = place_of(name)
    except InvalidReferenceError as error:
        return str(error)
    return None if in_any(place, places) else _NOT_NAMED


class _Leaf(NamedTuple):
    """A value with its key, the letters of its name, and what stands beside it.

    `named`: a key above names images. `listed`: it is in a list, where a bare name is no image of
    the chart's own registry.
    """

    key: str
    value: Any
    name: str = ""
    beside: Mapping[str, Any] = {}
    named: bool = False
    listed: bool = False


def _leaves(
    value: object, above: str = "", *, named: bool = False, listed: bool = False
) -> Iterator[_Leaf]:
    """The values of a chart that may name an image, a registry or a chart."""
    for entry in items(value):
        if not isinstance(entry, str):
            yield from _leaves(entry, above, named=named, listed=True)
        else:
            yield _Leaf(above, entry, named=named, listed=True)
    if not isinstance(value, Mapping):
        return
    if isinstance(variable := value.get("name"), str) and "value" in value:
        value = {**value, variable: value["value"]}
    for step, below in value.items():
        key, name = f"{above}.{step}".lstrip("."), re.sub(r"[^a-z]", "", str(step).lower())
        if key.startswith(_USERS_OWN) or _NO_NAMES.search(name):
            continue
        if name == "chart" and isinstance(below, Mapping):  # that a vCluster installs inside
            below = "/".join(str(below[k]).rstrip("/") for k in ("repo", "name") if below.get(k))
            yield _Leaf(key, below, "repo")
        elif isinstance(below, Mapping | list | tuple):
            inside = named or bool(_NAMES.search(name))
            yield from _leaves(below, key, named=inside, listed=listed)
        else:
            yield _Leaf(key, below, name, value, named, listed)


def _wrong(leaf: _Leaf, known: KnownSources, home: str, image: str) -> str | None:
    """What is wrong with a value. `home` is the registry, and `image` a repository there, that the
    chart has of itself where only one of the two is written.
    """
    value, name, text = leaf.value, leaf.name, str(leaf.value or "")
    registry = name.endswith(("registry", "mirror"))
    names_image = bool(_NAMES.search(name)) or (leaf.named and name in ("name", "url"))
    if not isinstance(value, str) and not (value is None and names_image):
        return None
    if name in ("repo", "bundle"):
        return _elsewhere(sources.chart_place, text, known.chart_places) if text else None
    if "manifests" in name:
        return "has manifests, in which no image is looked at"
    if not names_image:
        if _TAG.search(name):
            tag = "is no tag and no sha256 digest, and may continue the image's name"
            return None if sources.TAGS.fullmatch(text) else tag
        if _FLAG.match(text.strip()):
            return "is a flag that names an image"
        place_of = sources.image_place
        return _elsewhere(place_of, text, known.image_places) if leaf.named and text else None
    if not text:
        needed = registry or name == "repository"
        return "is empty, so that the name beside it may lead anywhere" if needed else None
    if name == "registry" and image:
        if isinstance(leaf.beside.get("repository"), str):
            return None  # judged there
        text = f"{text}/{image}"
    elif name == "repository" and not _HOST.match(text):
        text = f"{leaf.beside.get('registry', home) or ''}/{text}".removeprefix("/")
    elif _BARE.fullmatch(text) and not leaf.listed and not registry:
        return None  # relative to the chart's own registry
    place_of = sources.registry_place if registry else sources.image_place
    return _elsewhere(place_of, text, known.image_places)
