"""The rules as a policy pack, by Pulumi's analyzer protocol: a policy for each rule.

The SDK's `PolicyPack` does not fit: it reads the whole stack anew for each of its policies, raises
errors for unknown values, takes secrets for plain text and forgets what was declared.
"""

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import entry_points
from typing import NamedTuple

import grpc
from google.protobuf import json_format
from google.protobuf.empty_pb2 import Empty
from google.protobuf.struct_pb2 import Struct
from pulumi.runtime import proto
from pulumi.runtime.proto import analyzer_pb2_grpc

from kai_fleet.names import PACKAGE, QUEUES
from kai_fleet.provider import version
from kai_fleet.provider.serving import OPTIONS, announce
from kai_fleet.provider.values import python_values
from kai_fleet.values import UNKNOWN, Maybe
from kai_fleet.wording import MASK
from kai_fleet_policies.adapters.from_resources import PROVIDER, clusters
from kai_fleet_policies.adapters.keys import key_of, team_keys, with_keys
from kai_fleet_policies.adapters.resource import DeclaredResource
from kai_fleet_policies.finding import Finding, Level, report
from kai_fleet_policies.model.cluster import ClusterModel
from kai_fleet_policies.model.queues import DeclaredQueue
from kai_fleet_policies.rules import BY_NAME, RULES, check
from kai_fleet_policies.rules.queues import EXISTING_QUEUES
from kai_fleet_policies.rules.rule import Rule

NAME = "kai-fleet"
UNDECIDED = "undecided"
EXEMPT_KEY = "exemptNamespaces"
# Entry points of functions that judge the secrets of a stack file: kai-fleet-stack has one.
SECRET_CHECKS = "kai_fleet.secret_checks"
_SHORTEST_SECRET = 4  # characters; masking a shorter one would hide parts of other words


class _Property(NamedTuple):
    """A list of names that a stack may set for rules whose names begin with one of `rules`."""

    rules: tuple[str, ...]
    description: str


_PROPERTIES = {
    EXEMPT_KEY: _Property(
        ("workload-", "namespace-reserved"),
        "Namespaces whose workloads this rule leaves alone.",
    ),
    EXISTING_QUEUES: _Property(
        ("queue-tree", "workload-leaf-queue"),
        "Queues that another program makes, such as KAI's chart.",
    ),
}


def schema(rule: str) -> dict[str, dict[str, object]]:
    """The properties that the rule of this name takes, as JSON Schema by name; empty for none."""
    properties = dict[str, dict[str, object]]()
    for key, configurable in _PROPERTIES.items():
        if rule.startswith(configurable.rules):
            properties[key] = {
                "type": "array",
                "items": {"type": "string"},
                "default": [],
                "description": configurable.description,
            }
    return properties


def _policy(rule: Rule) -> proto.PolicyInfo:
    """The protocol's record of a policy.

    Its remedy is only the rule's demand; each finding says what to write.
    """
    info = proto.PolicyInfo(
        name=rule.name,
        description=rule.reason,
        enforcementLevel=getattr(proto, rule.level.name),
        policy_type=proto.POLICY_TYPE_STACK,
        severity=getattr(proto, f"POLICY_SEVERITY_{rule.severity.upper()}"),
        remediation_steps=rule.demand,
    )
    properties = schema(rule.name)
    if properties:
        json_format.ParseDict(properties, info.configSchema.properties)
    return info


_OPEN_QUESTIONS = Rule(
    UNDECIDED,
    Level.ADVISORY,
    "low",
    "Nothing to do: the rules are asked again during the update.",
    "Some values are known only during the update; these rules decide then.",
    lambda cluster: iter(()),
)
# A policy for each rule, and then the one for what is not decided yet: AnalyzeStack needs it last.
POLICIES = tuple(map(_policy, (*RULES, _OPEN_QUESTIONS)))


def _configured(cluster: ClusterModel, properties: Mapping[str, Collection[str]]) -> ClusterModel:
    """The cluster without pods and objects of exempt namespaces, and with existing queues.

    `properties` has lists by the keys of _PROPERTIES; a key may be absent. An absent namespace is
    `default`, and one that is UNKNOWN is not exempt. An existing queue that is not declared is
    added at the top, without shares and a URN. All this also in the cluster that schedules its
    pods.
    """
    if not any(properties.values()):
        return cluster
    exempt = properties.get(EXEMPT_KEY) or ()
    existing = set(properties.get(EXISTING_QUEUES) or ())

    def is_judged(namespace: Maybe[str] | None) -> bool:
        # An unknown namespace may turn out not to be exempt: the rule keeps its question.
        return namespace is UNKNOWN or (namespace or "default") not in exempt

    missing = sorted(existing - cluster.tree.by_name.keys())
    host = cluster.scheduled_by
    return replace(
        cluster,
        queues=(*cluster.queues, *map(DeclaredQueue, missing)),
        workloads=tuple(pod for pod in cluster.workloads if is_judged(pod.namespace)),
        objects=tuple(thing for thing in cluster.objects if is_judged(thing.namespace)),
        scheduled_by=None if host is None else _configured(host, properties),
    )


class Analyzer(analyzer_pb2_grpc.AnalyzerServicer):
    """Answers the calls of the engine during one preview or update, in Pulumi's protocol."""

    def __init__(self) -> None:
        self._version = version()  # read from the package's metadata
        self._config: dict[str, proto.PolicyConfig] = {}
        self._inputs: dict[str, Struct] = {}  # by URN, as they were declared
        self._secrets = set[str]()
        self._team_keys = dict[str, str]()  # keys of the stack file by team
        self._names_keys = False  # keys in place of URNs: only for stacks of our own program

    # Calls of the protocol, named as it names them.

    def GetAnalyzerInfo(  # noqa: N802
        self, request: Empty, context: grpc.ServicerContext
    ) -> proto.AnalyzerInfo:
        """The pack and its policies."""
        return proto.AnalyzerInfo(
            name=NAME, version=self._version, supportsConfig=True, policies=POLICIES
        )

    def GetPluginInfo(  # noqa: N802
        self, request: Empty, context: grpc.ServicerContext
    ) -> proto.PluginInfo:
        """The version of the pack."""
        return proto.PluginInfo(version=self._version)

    def Configure(  # noqa: N802
        self, request: proto.ConfigureAnalyzerRequest, context: grpc.ServicerContext
    ) -> Empty:
        """Keep the levels and properties that a stack sets, which the engine has checked."""
        self._config = dict(request.policyConfig.items())
        return Empty()

    def ConfigureStack(  # noqa: N802
        self, request: proto.AnalyzerStackConfigureRequest, context: grpc.ServicerContext
    ) -> proto.AnalyzerStackConfigureResponse:
        """Learn the keys of the stack file, and judge its secrets.

        Neither for a stack of another project. Aborts the call, and with it the run, with
        FAILED_PRECONDITION if the file has a copy of a secret, or a secret at a key that takes
        none. A file without secrets is not judged. The program refuses the same, but a pull request
        may change the program.
        """
        self._names_keys = request.project == PACKAGE
        if not self._names_keys:
            self._team_keys = {}
            return proto.AnalyzerStackConfigureResponse()
        self._team_keys = team_keys(request.config)
        secret_keys = request.config_secret_keys
        if secret_keys:
            findings = list[Finding]()
            for check in entry_points(group=SECRET_CHECKS):
                findings += check.load()(request.stack, request.config, secret_keys)
            if findings:
                context.abort(grpc.StatusCode.FAILED_PRECONDITION, report(findings))
        return proto.AnalyzerStackConfigureResponse()

    def Remediate(  # noqa: N802
        self, request: proto.AnalyzeRequest, context: grpc.ServicerContext
    ) -> proto.RemediateResponse:
        """Change nothing: a rule says what to write, and leaves the writing to its user."""
        return proto.RemediateResponse()

    def Analyze(  # noqa: N802
        self, request: proto.AnalyzeRequest, context: grpc.ServicerContext
    ) -> proto.AnalyzeResponse:
        """Keep the inputs of a resource; AnalyzeStack judges them.

        AnalyzeStack gets the resources' outputs, and in a preview the engine has none behind a
        provider that is not known yet: for everything inside a new vCluster.
        """
        self._inputs[request.urn] = request.properties
        return proto.AnalyzeResponse()

    def AnalyzeStack(  # noqa: N802
        self, request: proto.AnalyzeStackRequest, context: grpc.ServicerContext
    ) -> proto.AnalyzeResponse:
        """What the rules find in a whole stack, at the levels that the stack sets.

        A disabled rule is not asked. Undecided findings are those of the policy UNDECIDED, whatever
        rule has them: its level counts for them, and if it is disabled they are left out.
        """
        judged = self._clusters(request.resources)
        undecided = list[Finding]()
        answer = proto.AnalyzeResponse()
        for policy in POLICIES:
            config = self._config.get(policy.name)
            level = policy.enforcementLevel if config is None else config.enforcementLevel
            if level == proto.DISABLED:
                continue
            if policy.name == UNDECIDED:  # the last policy: all rules have been asked
                findings = undecided
            else:
                findings = self._findings(policy.name, judged)
                undecided += [finding for finding in findings if finding.undecided]
                findings = [finding for finding in findings if not finding.undecided]
            for finding in findings:
                answer.diagnostics.append(self._diagnostic(policy, level, finding))
        return answer

    def _clusters(self, resources: Iterable[proto.AnalyzerResource]) -> list[ClusterModel]:
        """The clusters of a stack, by the order of URNs: the engine's order is that of creation.

        Only objects of Kubernetes, their providers and queue trees are read: not the commands that
        stand for the identity of a vCluster.
        """
        declared = [
            self._declared(resource)
            for resource in sorted(resources, key=lambda resource: str(resource.urn))
            if resource.type.startswith("kubernetes:") or resource.type in (PROVIDER, QUEUES)
        ]
        return clusters(declared)

    def _findings(self, rule: str, judged: Iterable[ClusterModel]) -> list[Finding]:
        """What a rule finds in the clusters, with the properties that the stack sets for it."""
        config = self._config.get(rule)
        properties = {} if config is None else json_format.MessageToDict(config.properties)
        configured = [_configured(cluster, properties) for cluster in judged]
        return check(configured, [BY_NAME[rule]])

    def _declared(self, resource: proto.AnalyzerResource) -> DeclaredResource:
        """A resource with its inputs, and with the namespace that its provider fills in.

        Without a call of Analyze for it, it has the properties that AnalyzeStack got. Keeps the
        secrets in them, which `_message` masks.
        """
        properties = self._inputs.get(resource.urn, resource.properties)
        namespace = python_values(resource.provider.properties, UNKNOWN).get("namespace")
        return DeclaredResource(
            urn=resource.urn,
            type=resource.type,
            name=resource.name,
            props=python_values(properties, UNKNOWN, self._secrets),
            provider=resource.provider.urn,
            default_namespace=namespace or "default",
        )

    def _diagnostic(
        self, policy: proto.PolicyInfo, level: proto.EnforcementLevel.ValueType, finding: Finding
    ) -> proto.AnalyzeDiagnostic:
        """A finding as the engine shows it; `level` is what the stack sets for the policy.

        A warning of a policy that refuses stays a warning at any level.
        """
        if policy.enforcementLevel == proto.MANDATORY and finding.level is Level.ADVISORY:
            level = proto.ADVISORY  # a rule that refuses may warn besides
        rule = f"{finding.check}: " if policy.name == UNDECIDED else ""
        return proto.AnalyzeDiagnostic(
            policyName=policy.name,
            policyPackName=NAME,
            policyPackVersion=self._version,
            message=f"{policy.description}\n{rule}{self._message(finding)}",
            urn=finding.path if finding.path.startswith("urn:") else "",
            description=policy.description,
            enforcementLevel=level,
            severity=policy.severity,
        )

    def _message(self, finding: Finding) -> str:
        """Subject, cause and fix, with secrets masked, but for those of less than four characters.

        For a stack of our own project with keys of the stack file in place of URNs.
        """
        message = f"{finding.subject}: {finding.message}"
        if self._names_keys:
            message = with_keys(message, self._team_keys)
            key = key_of(finding.path, self._team_keys)
            if key != finding.path:
                message = f"{key}: {message}"
        for secret in sorted(self._secrets, key=len, reverse=True):  # a rule names what it refuses
            if len(secret) >= _SHORTEST_SECRET:
                message = message.replace(secret, MASK)
        return message


def main() -> None:
    """Serve on a free port of 127.0.0.1, print it for the engine, and wait to be ended."""
    server = grpc.server(ThreadPoolExecutor(1), options=OPTIONS)  # one call at a time
    analyzer_pb2_grpc.add_AnalyzerServicer_to_server(Analyzer(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    announce(port)
    server.wait_for_termination()
