"""The rules as a policy pack, by Pulumi's analyzer protocol: a policy for each rule.

Not the SDK's `PolicyPack`: it reads the whole stack anew for each of its policies, wrapped so that
an unknown value raises an error, takes secrets for plain text and forgets what was declared. Of 600
resources it took 2.0 s of CPU time for as many policies as there are rules. Here every value is
read once, which took 0.06 s with the rules, and an unknown one is UNKNOWN.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import grpc
from google.protobuf import json_format
from google.protobuf.empty_pb2 import Empty
from pulumi.runtime import proto
from pulumi.runtime.proto import analyzer_pb2_grpc

from kai_fleet.cluster.provider import version
from kai_fleet.cluster.provider.serving import OPTIONS, announce
from kai_fleet.cluster.provider.values import plain
from kai_fleet.finding import Finding, Level
from kai_fleet.names import QUEUES
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import MASK
from kai_fleet_policies.adapters.from_resources import PROVIDER, Declared, clusters
from kai_fleet_policies.pack.policies import POLICIES, UNDECIDED, configured
from kai_fleet_policies.rules import BY_NAME, check

NAME: Final = "kai-fleet"
_SHORTEST_SECRET: Final = 4  # a shorter one would hide parts of other words


class Analyzer(analyzer_pb2_grpc.AnalyzerServicer):
    """What the engine asks of a policy pack during one preview or update."""

    def __init__(self) -> None:
        self._version = version()  # read from the package's metadata
        self._config: dict[str, Any] = {}
        self._inputs: dict[str, Any] = {}
        self._secrets = set[str]()

    # Calls of the protocol, named as it names them.

    def GetAnalyzerInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        """The pack and its policies, each with its level and the configuration that it takes."""
        return proto.AnalyzerInfo(
            name=NAME, version=self._version, supportsConfig=True, policies=POLICIES
        )

    def GetPluginInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Its version."""
        return proto.PluginInfo(version=self._version)

    def Configure(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Levels and properties that a stack sets, by policy; the engine has checked them."""
        self._config = dict(request.policyConfig.items())
        return Empty()

    def ConfigureStack(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Nothing: the program judges the configuration of its stack."""
        return proto.AnalyzerStackConfigureResponse()

    def Remediate(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Nothing: a rule says what to write, and leaves the writing to its user."""
        return proto.RemediateResponse()

    def Analyze(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Keeps what was declared.

        A stack is sent with its resources' outputs, and in a preview the engine has none for what
        lies behind a provider that is not known yet: everything inside a new vCluster.
        """
        self._inputs[request.urn] = request.properties
        return proto.AnalyzeResponse()

    def AnalyzeStack(self, request: Any, context: Any) -> Any:  # noqa: N802
        """What the rules say of a whole stack."""
        # Sorted, because resources come in the order in which they happened to be made.
        every = clusters(
            self._declared(resource)
            for resource in sorted(request.resources, key=lambda resource: str(resource.urn))
            if resource.type.startswith("kubernetes:") or resource.type in (PROVIDER, QUEUES)
        )
        undecided, answer = list[Finding](), proto.AnalyzeResponse()
        for policy in POLICIES:
            config = self._config.get(policy.name)
            level = policy.enforcementLevel if config is None else config.enforcementLevel
            if level == proto.DISABLED:
                continue
            found: Sequence[Finding] = undecided
            if policy.name != UNDECIDED:
                properties = {} if config is None else json_format.MessageToDict(config.properties)
                seen = (configured(cluster, properties) for cluster in every)
                found = check(seen, (BY_NAME[policy.name],))
                undecided += [finding for finding in found if finding.undecided]
                found = [finding for finding in found if not finding.undecided]
            answer.diagnostics.extend(self._diagnostic(policy, level, one) for one in found)
        return answer

    def _declared(self, resource: Any) -> Declared:
        """A resource as it was declared, with what its provider fills in."""
        properties = self._inputs.get(resource.urn, resource.properties)
        default = plain(resource.provider.properties, UNKNOWN).get("namespace")
        return Declared(
            urn=resource.urn,
            type=resource.type,
            name=resource.name,
            props=plain(properties, UNKNOWN, self._secrets),
            provider=resource.provider.urn,
            default_namespace=default or "default",
        )

    def _diagnostic(self, policy: Any, level: Any, finding: Finding) -> Any:
        rule = f"{finding.check}: " if policy.name == UNDECIDED else ""
        if policy.enforcementLevel == proto.MANDATORY and finding.level is Level.ADVISORY:
            level = proto.ADVISORY  # a rule that refuses may warn besides
        what = f"{finding.subject}: {finding.message}"
        for secret in sorted(self._secrets, key=len, reverse=True):  # a rule names what it refuses
            if len(secret) >= _SHORTEST_SECRET:
                what = what.replace(secret, MASK)
        return proto.AnalyzeDiagnostic(
            policyName=policy.name,
            policyPackName=NAME,
            policyPackVersion=self._version,
            message=f"{policy.description}\n{rule}{what}",
            urn=finding.path if finding.path.startswith("urn:") else "",
            description=policy.description,
            enforcementLevel=level,
            severity=policy.severity,
        )


def main() -> None:
    """Answer the engine until it ends this process; never returns."""
    server = grpc.server(ThreadPoolExecutor(1), options=OPTIONS)  # one call at a time
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Analyzer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    announce(port)
    server.wait_for_termination()
