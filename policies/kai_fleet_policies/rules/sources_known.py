"""Charts and images come from where the release tables and kai-fleet:sources say."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from kai_fleet.fleet.installed import InstalledChart
from kai_fleet.fleet.model import DeclaredCluster
from kai_fleet.releases import sources
from kai_fleet.releases.sources import NoPlaceError, SourcePlace
from kai_fleet.values import UNKNOWN, at
from kai_fleet_policies.image_names import Named, names
from kai_fleet_policies.problem import Level, ProblemPlace, Problems, Severity

LEVEL = Level.MANDATORY
SEVERITY = Severity.CRITICAL
WHY = (
    "A chart is installed with the platform's rights, and an image of the platform's parts runs"
    " beside every team: one line of a pull request would put somebody else's program there (T17)."
)
REMEDY = (
    "Drop the key, or name the mirror once, in kai-fleet:sources of the platform's stack. Images of"
    " workloads are their users' own."
)
_CHARTS: Final = "kai-fleet:sources.charts"
_IMAGES: Final = "kai-fleet:sources.images"
_NEEDS: Final = {"image": "an image", "registry": "a registry", "chart": "a chart"}


def check(cluster: DeclaredCluster) -> Problems:
    """Every chart that is installed, and every name among its values."""
    charts, images = cluster.sources.chart_places, cluster.sources.image_places
    exact = [sources.registry_place(each) for each in cluster.sources.kai_images]
    seen: set[tuple[str, str]] = set()  # a value of the stack for all its teams is reported once
    for installed in cluster.installed:
        yield from _chart(installed, charts)
        if installed.values is UNKNOWN:
            yield ProblemPlace(installed.subject, installed.path).undecided("its values are known")
            continue
        for named in names(installed.of, installed.values):
            where = (installed.place_of(named.key), named.key)
            if where not in seen:
                for problem in _named(installed, named, charts, images, exact):
                    seen.add(where)
                    yield problem


def _chart(installed: InstalledChart, known: Sequence[SourcePlace]) -> Problems:
    place = ProblemPlace(installed.subject, at(installed.path, "chart"))
    if installed.chart is UNKNOWN:
        yield place.undecided("its chart is known")
    elif installed.chart is not None and (wrong := _elsewhere("chart", installed.chart, known)):
        message = f"has chart{_name(installed, installed.chart)}, which {wrong}"
        yield place.mandatory(f"{message}; {_chart_remedy(installed)}")


def _named(
    installed: InstalledChart,
    named: Named,
    charts: Sequence[SourcePlace],
    images: Sequence[SourcePlace],
    exact: Sequence[SourcePlace],
) -> Problems:
    place = ProblemPlace(installed.subject, installed.place_of(named.key))
    has = f"has {named.key}{_name(installed, named.name)}"
    match named.what:
        case "unknown":
            yield place.undecided(f"{named.key} is known")
        case "unreadable":
            yield place.mandatory(
                f"has {named.key}, in which the images cannot be read; drop it, or write plain"
                " YAML whose images are those of the release tables"
            )
        case "tag":
            message = "which is no tag and no sha256 digest and may continue the image's name"
            yield place.mandatory(f"{has}, {message}; write a tag such as v1.2.3")
        case "chart":
            if wrong := _elsewhere("chart", named.name, charts):
                yield place.mandatory(f"{has}, which {wrong}; {_chart_remedy(installed)}")
        case _:
            if wrong := _elsewhere(named.what, named.name, images):
                yield place.mandatory(
                    f"{has}, which {wrong}; drop it for the images of the release table, or have"
                    f" its registry written in {_IMAGES}{_where(installed)}"
                )
            elif installed.by_name:
                yield from _by_name(installed, named, place, exact)


def _by_name(
    installed: InstalledChart, named: Named, place: ProblemPlace, exact: Sequence[SourcePlace]
) -> Problems:
    """At level restricted the host's guard knows KAI's images by the whole of their names."""
    if named.what == "image":
        image = sources.image_place(named.name)
        home = replace(image, path=image.path[:-1])
    else:
        home = sources.registry_place(named.name)
    if home not in exact:
        yield place.mandatory(
            f"has {named.key}{_name(installed, named.name)}, which is only below what {_IMAGES}"
            " names: at isolation level restricted KAI's images pass by their whole names; have"
            f" the very registry with its path written in {_IMAGES}{_where(installed)}"
        )


def _elsewhere(what: str, name: str, known: Sequence[SourcePlace]) -> str | None:
    """What is wrong with where a name leads; None where it leads to a known place."""
    read = {"chart": sources.chart_place, "registry": sources.registry_place}
    try:
        place = read.get(what, sources.image_place)(name)
    except NoPlaceError as error:
        return str(error)
    if sources.in_any(place, known):
        return None
    return f"is {_NEEDS[what]} from a place that the platform does not name as a source"


def _name(installed: InstalledChart, name: str) -> str:
    return "" if installed.hidden else f": {sources.shown(name)}"


def _chart_remedy(installed: InstalledChart) -> str:
    return (
        "drop it, the release table says where the chart is; or have the location of a mirror"
        f" (oci://… or https://…) written in {_CHARTS}{_where(installed)}. Packages in a directory"
        " are installed with KAI_FLEET_CHARTS, a variable of who runs the update"
    )


def _where(installed: InstalledChart) -> str:
    return " of the platform's stack" if installed.own_stack else ""
