"""Which chart a release is of: the one that its section or its component is for."""

from kai_fleet.releases.charts import same_version
from kai_fleet_policies.model.cluster import Chart, Cluster
from kai_fleet_policies.rules.rule import Findings, Place, known, mandatory, row
from kai_fleet_policies.rules.sources import installed_charts


@mandatory("chart-of-its-part", "critical", installed_charts)
def chart_of_its_part(cluster: Cluster, installed: Chart, place: Place) -> Findings:
    """A chart is the one that its section is for, at that section's version.

    Any chart of a known place would be installed with the platform's rights in its stead, and be
    looked at by no rule. In a component of this program there is no release of another chart.
    """
    if installed.names is None or installed.chart is None:
        return
    if not installed.names:
        yield place.refuse(*row("chart-of-none"))
        return
    known(installed.chart, "its chart is known")
    version = known(installed.version, "its version is known") or ""
    if why := installed.why_another:
        name = " or ".join(installed.names)
        yield place.at("chart").refuse(
            *row("chart-of-another", why=why, name=name, version=version)
        )
    if installed.tested and not same_version(version, installed.tested):
        values = {"version": version, "tested": installed.tested}
        if installed.untested:
            cause, _ = row("version-untested", version=version, nearest=installed.tested)
            yield place.at("version").warn(cause)
        else:
            yield place.at("version").refuse(*row("chart-version", **values))
