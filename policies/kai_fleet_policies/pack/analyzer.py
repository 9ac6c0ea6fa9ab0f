"""The rules as a policy pack, by Pulumi's analyzer protocol: a policy for each rule.

Not the SDK's `PolicyPack`: it reads the whole stack anew for each of its policies, wrapped so that
an unknown value raises an error, takes secrets for plain text and forgets what was declared. Of 600
resources it took 2.0 s of CPU time for as many policies as there are rules. Here every value is
read once, which took 0.06 s with the rules, and an unknown one is UNKNOWN.
"""

from collections.abc import Iterable, Mapping, Sequence
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
from kai_fleet.names import PACKAGE, QUEUES
from kai_fleet.values import UNKNOWN
from kai_fleet.wording import MASK
from kai_fleet_policies.adapters.declared_trees import PROVIDER
from kai_fleet_policies.adapters.from_resources import Declared, clusters
from kai_fleet_policies.pack.policies import POLICIES, UNDECIDED, configured
from kai_fleet_policies.rules import BY_NAME, check
from kai_fleet_policies.rules.workloads import workload_known_keys

NAME: Final = "kai-fleet"
_EARLY: Final = [policy for policy in POLICIES if policy.name == workload_known_keys.name]
_SHORTEST_SECRET: Final = 4  # a shorter one would hide parts of other words
_READ_BY_EVERY_SERVER: Final = ("kubernetes:core/", "kubernetes:apps/", "kubernetes:batch/")


class Analyzer(analyzer_pb2_grpc.AnalyzerServicer):
    """What the engine asks of a policy pack during one preview or update."""

    def __init__(self) -> None:
        self._version = version()  # read from the package's metadata
        self._config: dict[str, Any] = {}
        self._inputs: dict[str, Any] = {}
        self._secrets = set[str]()
        self._reported: set[Finding] = set()

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
        """Ends the run where the stack's file has a secret at a key that is for none, or a copy."""
        if request.project == PACKAGE and request.config_secret_keys:
            # Half a second of imports, which other stacks are spared.
            from kai_fleet_policies.validation import report, secret_findings

            keys = request.config_secret_keys
            if findings := secret_findings(request.stack, request.config, keys):
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, report(findings))
        return proto.AnalyzerStackConfigureResponse()

    def Remediate(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Nothing: a rule says what to write, and leaves the writing to its user."""
        return proto.RemediateResponse()

    def AnalyzeStack(self, request: Any, context: Any) -> Any:  # noqa: N802
        """What the rules say of a whole stack."""
        return self._answer(POLICIES, _stack(request.resources, self._inputs, self._secrets))

    def Analyze(self, request: Any, context: Any) -> Any:  # noqa: N802
        """Keeps what was declared; says only what the stack's analysis would come too late for.

        A stack is sent with its resources' outputs, and in a preview the engine has none for what
        lies behind a provider that is not known yet: everything inside a new vCluster. And where
        the API server refuses an object at preview, as it does labels that are no strings, the
        stack is never analyzed.
        """
        self._inputs[request.urn] = request.properties
        if not request.type.startswith(_READ_BY_EVERY_SERVER):
            return proto.AnalyzeResponse()
        resource = _one(request, request.properties, {}, self._secrets)
        return self._answer(_EARLY, [resource], early=True)

    def _answer(
        self, policies: Sequence[Any], declared: Iterable[Declared], *, early: bool = False
    ) -> Any:
        """What was reported `early`, of one resource, is not reported again with the stack."""
        every, undecided = clusters(declared), list[Finding]()
        answer = proto.AnalyzeResponse()
        for policy in policies:
            config = self._config.get(policy.name)
            level = policy.enforcementLevel if config is None else config.enforcementLevel
            if level == proto.DISABLED:
                continue
            if policy.name == UNDECIDED:
                findings = undecided
            else:
                properties = {} if config is None else json_format.MessageToDict(config.properties)
                seen = (configured(cluster, properties) for cluster in every)
                found = check(seen, (BY_NAME[policy.name],))
                undecided += [finding for finding in found if finding.undecided]
                known = set() if early else self._reported
                findings = [each for each in found if not each.undecided and each not in known]
            if early:
                self._reported.update(findings)
            answer.diagnostics.extend(self._diagnostic(policy, level, one) for one in findings)
        return answer

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


def _stack(
    resources: Iterable[Any], inputs: Mapping[str, Any], secrets: set[str]
) -> list[Declared]:
    """What the rules read of a stack, by their `inputs` where those are kept: Kubernetes resources,
    their providers and queue trees. `secrets` gets what is secret in them.

    Inputs are what was declared, and are there in every preview; outputs may not be. Sorted,
    because resources come in the order in which they happened to be made.
    """
    namespaces: dict[str, str] = {}
    return [
        _one(resource, inputs.get(resource.urn, resource.properties), namespaces, secrets)
        for resource in sorted(resources, key=lambda resource: str(resource.urn))
        if resource.type.startswith("kubernetes:") or resource.type in (PROVIDER, QUEUES)
    ]


def _one(resource: Any, properties: Any, namespaces: dict[str, str], secrets: set[str]) -> Declared:
    """One resource; `namespaces` keeps the default one of each provider between calls."""
    provider = resource.provider if resource.HasField("provider") else None
    urn = provider.urn if provider else ""
    if urn not in namespaces:
        found = plain(provider.properties, UNKNOWN).get("namespace") if provider else None
        known = found is UNKNOWN or isinstance(found, str)
        namespaces[urn] = found if known and found else "default"
    return Declared(
        urn=resource.urn,
        type=resource.type,
        name=resource.name,
        props=plain(properties, UNKNOWN, secrets),
        provider=urn,
        default_namespace=namespaces[urn],
    )


def main() -> None:
    """Answer the engine until it ends this process; never returns."""
    server = grpc.server(ThreadPoolExecutor(1), options=OPTIONS)  # one call at a time
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Analyzer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    announce(port)
    server.wait_for_termination()
