"""The rules as a policy pack, by Pulumi's analyzer protocol: a policy for each rule.

Not by the SDK's `PolicyPack`, which reads the whole stack anew for each of its policies, raises
errors for unknown values, takes secrets for plain text and forgets what was declared.
"""

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
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
from kai_fleet_policies.adapters.from_resources import PROVIDER, Declared, clusters
from kai_fleet_policies.adapters.keys import key_of, team_keys, with_keys
from kai_fleet_policies.model.cluster import Cluster
from kai_fleet_policies.model.queues import DeclaredQueue
from kai_fleet_policies.rules import BY_NAME, RULES, check
from kai_fleet_policies.rules.queues import EXISTING_QUEUES
from kai_fleet_policies.rules.rule import Rule

NAME: Final = "kai-fleet"
UNDECIDED: Final = "undecided"
EXEMPT_KEY: Final = "exemptNamespaces"
_SHORTEST_SECRET: Final = 4  # a shorter one would hide parts of other words
# What a stack may set, each a list of names: of which rules, and what it means.
_PROPERTIES: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    EXEMPT_KEY: (
        ("workload-", "namespace-reserved"),
        "Namespaces whose workloads this rule leaves alone.",
    ),
    EXISTING_QUEUES: (
        ("queue-tree", "workload-leaf-queue"),
        "Queues that another program makes, such as KAI's chart.",
    ),
}


def schema(rule: str) -> dict[str, dict[str, Any]]:
    """The properties that a rule takes, as JSON Schema."""
    names = {"type": "array", "items": {"type": "string"}, "default": []}
    return {
        key: {**names, "description": description}
        for key, (rules, description) in _PROPERTIES.items()
        if rule.startswith(rules)
    }


def _policy(rule: Rule) -> Any:
    """The protocol's own record of a policy."""
    info = proto.PolicyInfo(
        name=rule.name,
        description=rule.why,
        enforcementLevel=getattr(proto, rule.level.name),
        policy_type=proto.POLICY_TYPE_STACK,
        severity=getattr(proto, f"POLICY_SEVERITY_{rule.severity.upper()}"),
        remediation_steps=rule.about,
    )
    if properties := schema(rule.name):
        json_format.ParseDict(properties, info.configSchema.properties)
    return info


_OPEN_QUESTIONS: Final = Rule(
    UNDECIDED,
    Level.ADVISORY,
    "low",
    "Nothing to do: the rules are asked again during the update.",
    "Some values are known only during the update; these rules decide then.",
    lambda cluster: iter(()),
)
# A policy for each rule, and last the one for what is not decided yet.
POLICIES: Final = tuple(map(_policy, (*RULES, _OPEN_QUESTIONS)))


def _configured(cluster: Cluster, properties: Mapping[str, Collection[str]]) -> Cluster:
    """The cluster as a rule is to see it: without exempt namespaces, and with queues that another
    program makes, in the one that schedules it too.
    """
    if not any(properties.values()):
        return cluster
    exempt, queues = (properties.get(key) or () for key in (EXEMPT_KEY, EXISTING_QUEUES))

    def judged(namespace: str | None) -> bool:
        # An unknown namespace may turn out not to be exempt: the rule keeps its question.
        return namespace is UNKNOWN or (namespace or "default") not in exempt

    host, more = cluster.scheduled_by, sorted(set(queues) - cluster.tree.by_name.keys())
    return replace(
        cluster,
        queues=(*cluster.queues, *map(DeclaredQueue, more)),
        workloads=tuple(each for each in cluster.workloads if judged(each.namespace)),
        objects=tuple(each for each in cluster.objects if judged(each.namespace)),
        scheduled_by=host and _configured(host, properties),
    )


class Analyzer(analyzer_pb2_grpc.AnalyzerServicer):
    """What the engine asks of a policy pack during one preview or update."""

    def __init__(self) -> None:
        self._version = version()  # read from the package's metadata
        self._config: dict[str, Any] = {}
        self._inputs: dict[str, Any] = {}
        self._secrets = set[str]()
        self._teams = dict[str, str]()
        self._names_keys = False

    # Calls of the protocol, named as it names them.

    def GetAnalyzerInfo(self, request: Any, context: Any) -> Any:  # noqa: N802
        """The pack and its policies."""
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
        """Learn the keys of the stack's file, and end the run where that has a copy of a secret, or
        one at a key for none.

        The program refuses the same, but a pull request may change the program.
        """
        self._names_keys = request.project == PACKAGE
        self._teams = team_keys(request.config) if self._names_keys else {}
        if self._names_keys and request.config_secret_keys:
            # Half a second of imports, which other stacks are spared.
            from kai_fleet_policies.validation import report, secret_findings

            keys = request.config_secret_keys
            if findings := secret_findings(request.stack, request.config, keys):
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, report(findings))
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
                seen = (_configured(cluster, properties) for cluster in every)
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
        if self._names_keys:
            key = key_of(finding.path, self._teams)
            lead = "" if key == finding.path else f"{key}: "
            what = lead + with_keys(what, self._teams)
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
