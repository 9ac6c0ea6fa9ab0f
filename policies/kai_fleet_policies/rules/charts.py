"""Which chart a release is of: the one that its section or its component is for."""

from kai_fleet.releases.charts import same_version
from kai_fleet_policies.model.cluster import ClusterModel
from kai_fleet_policies.model.installed import Chart
from kai_fleet_policies.rules.kai import untested_cause
from kai_fleet_policies.rules.rule import Findings, Subject, mandatory, require_known
from kai_fleet_policies.rules.sources import installed_charts


@mandatory("chart-of-its-part", "critical", installed_charts)
def chart_of_its_part(cluster: ClusterModel, installed: Chart, subject: Subject) -> Findings:
    """A chart is the one that its section is for, at that section's version.

    Any chart of a known place would be installed with the platform's rights in its stead, and be
    looked at by no rule. In a component of this program there is no release of another chart.
    """
    if installed.names is None or installed.chart is None:
        return  # no chart to judge, or that of the release table
    # Refused also while the chart is UNKNOWN; below it has to be known, as the version has.
    if not installed.names:
        yield subject.refuse(
            "is a Helm release in a component of kai-fleet that has no such chart",
            "declare it outside of the component, with a parent of your own, and the old URN as an"
            " alias",
        )
        return
    require_known(installed.chart, "its chart is known")
    version = require_known(installed.version, "its version is known") or ""
    # Name and version are two mistakes: both may be found.
    if reason := installed.why_another:
        name = " or ".join(installed.names)
        yield subject.at("chart").refuse(
            f"has a chart which {reason}",
            f"write a place that ends in {name}: oci://…/{name}, with the tag {version} or none, or"
            f" https://…/{name}-{version}.tgz; or drop it for that of the release table",
        )
    tested = installed.tested  # None or "" where the version does not matter here
    if not tested or same_version(version, tested):
        return
    if installed.untested:
        yield subject.at("version").warn(untested_cause(version, tested))
        return
    yield subject.at("version").refuse(
        f"is {version}, from another place than that of the release table, which has {tested}",
        f"write {tested}, or untested: true beside it to have that version",
    )
