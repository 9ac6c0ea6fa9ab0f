"""What checks find, object by object, and the findings made of it: one for each cause."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple, TypedDict, Unpack

from kai_fleet.cluster.kube.objects import KubeObject
from kai_fleet.wording import listed, short_line
from kai_fleet_cli.doctor.snapshot import Cluster
from kai_fleet_policies.finding import Command, Finding, Fix, Level, commands_of, sentence
from kai_fleet_policies.model.cluster import HOST

# In a command these stand for the objects of the finding: the namespace, and in it all objects or
# the first one.
NAMESPACE = "{namespace}"
NAMES = "{names}"
NAME = "{name}"
_SHOWN_NAMES = 10  # in the text of a finding
_NAMES_IN_COMMAND = 20  # the next run shows the others
_FIX_CHARACTERS = 20_000


@dataclass(frozen=True)
class Fault:
    """What is wrong with one object.

    Args:
        level: How bad it is.
        path: Name of the cluster.
        kind: Kind of the object, as messages write it; not always one of Kubernetes'.
        name: Its name; `NAMESPACE/NAME` if markers in the fix need its namespace; "" without one.
        cause: What is wrong, as a predicate, or as a clause about a part of the object.
        fix: What to do, an imperative in parts; empty if that is unknown. NAMESPACE, NAMES and NAME
            in its commands stand for the objects.
        check: Name of the finding's check if that is not the one that ran; else "".
        key: Identifies the cause if its text differs from object to object. Faults with the same
            key, check, level and kind become one finding, with the cause and fix of the first. ""
            if the text of cause and fix identifies it.
        effect_of: Subject of a fault on the host or in the same cluster: if there is that fault, it
            causes this one, which is then left out. "" without one.
    """

    level: Level
    path: str
    kind: str
    name: str
    cause: str
    fix: Fix = ()
    check: str = ""
    key: str = ""
    effect_of: str = ""

    @property
    def subject(self) -> str:
        """Kind and name: `pod ml/w`."""
        return f"{self.kind} {self.name}".strip()

    @property
    def path_and_subject(self) -> tuple[str, str]:
        """Cluster and subject, by which another fault names this one as its cause."""
        return self.path, self.subject


Faults = Iterator[Fault]


class Why(NamedTuple):
    """Why an object is not ready.

    Args:
        cause: The reason as a clause, or a message that it quotes.
        fix: What to do; empty if that is unknown.
        effect_of: As in Fault.
    """

    cause: str
    fix: Fix = ()
    effect_of: str = ""


class _Details(TypedDict, total=False):
    """What a fault may have besides cause and fix, as Fault says."""

    check: str
    key: str
    effect_of: str


@dataclass(frozen=True)
class Affected:
    """The object that a fault is about. Each method returns a fault of one level.

    Fault says what `kind`, `name` and the arguments of the methods are. The fix is given in parts.
    """

    cluster: Cluster
    kind: str
    name: str

    def broken(self, cause: str, *fix: str | Command, **details: Unpack[_Details]) -> Fault:
        """The object does not work: level `mandatory`."""
        return self.at_level(Level.MANDATORY, cause, *fix, **details)

    def warning(self, cause: str, *fix: str | Command, **details: Unpack[_Details]) -> Fault:
        """The object works, and something is wrong: level `advisory`."""
        return self.at_level(Level.ADVISORY, cause, *fix, **details)

    def tenants_fault(self, cause: str, *fix: str | Command, **details: Unpack[_Details]) -> Fault:
        """A tenant is the cause: level `info`; on the host, which has no tenants, `mandatory`."""
        return self.at_level(Level.INFO, cause, *fix, **details)

    def at_level(
        self, level: Level, cause: str, *fix: str | Command, **details: Unpack[_Details]
    ) -> Fault:
        """A fault of this level; on the host `mandatory` in place of `info`."""
        if level is Level.INFO and self.cluster.name == HOST:
            level = Level.MANDATORY
        return Fault(
            level=level,
            path=self.cluster.name,
            kind=self.kind,
            name=self.name,
            cause=cause,
            fix=fix,
            **details,
        )


def being_deleted(
    subject: Affected,
    item: KubeObject,
    resource: str,
    level: Level = Level.ADVISORY,
    *,
    declared: bool = True,
) -> Fault:
    """Return the fault of an object that is being deleted, with the finalizers that keep it.

    Raises one of MALFORMED.

    Args:
        subject: The object, as messages name it.
        item: The object.
        resource: The plural of its kind, for kubectl.
        level: How bad it is.
        declared: The stack declares the object: the fix creates it again. Else it waits for its
            end.
    """
    cluster = subject.cluster
    recreation: Fix = (cluster.update_command, ", which makes it again")
    if not item.finalizers:
        fix = recreation if declared else ("wait until it is gone",)
        return subject.at_level(level, "is being deleted", *fix)
    finalizers = ", ".join(item.finalizers)
    at = f"-n {item.namespace} " if item.namespace else ""
    none = """'{"metadata": {"finalizers": null}}'"""
    fix = (
        "have whoever wrote them finish: look with ",
        cluster.command(f"{at}get {resource} {NAME} -o yaml"),
        ". If that is gone for good: ",
        cluster.command(f"{at}patch {resource} {NAME} --type merge -p {none}"),
    )
    if declared:
        fix = (*fix, "; then ", *recreation)
    cause = f"is being deleted, and stays until its finalizers are gone: {finalizers}"
    return subject.at_level(level, cause, *fix)


CheckAndCluster = tuple[str, str]  # the names of both
FaultsByCheck = Mapping[CheckAndCluster, Sequence[Fault]]
_PathAndSubject = tuple[str, str]
_Effects = defaultdict[_PathAndSubject, list[_PathAndSubject]]  # by their cause


def without_effects(faults_by_check: FaultsByCheck) -> FaultsByCheck:
    """Leave out each fault that another one causes, and append its subject to the other's cause.

    The effects of an effect are named there, too. A check whose faults are all left out is left
    out, too: it is not well. A check without faults stays. Faults that cause each other in a ring
    are all left out. `faults_by_check` stays as it is.
    """
    all_faults = chain.from_iterable(faults_by_check.values())
    subjects = {fault.path_and_subject for fault in all_faults}
    effects = _Effects(list)
    causes_by_check = dict[CheckAndCluster, list[Fault]]()
    for checked, faults in faults_by_check.items():
        causes = list[Fault]()
        for fault in faults:
            cause = _cause_among(subjects, fault)
            if cause is None:
                causes.append(fault)
            else:
                effects[cause].append(fault.path_and_subject)
        if causes or not faults:
            causes_by_check[checked] = causes
    for causes in causes_by_check.values():
        causes[:] = [_with_effects(fault, effects) for fault in causes]
    return causes_by_check


def _cause_among(subjects: Collection[_PathAndSubject], effect: Fault) -> _PathAndSubject | None:
    """Return the one of `subjects`, each with its cluster, whose fault causes this one.

    One on the host before one in the same cluster; None without one. A fault never causes itself.
    """
    for path in (HOST, effect.path):
        cause = (path, effect.effect_of)
        if cause in subjects and cause != effect.path_and_subject:
            return cause
    return None


def _with_effects(fault: Fault, effects: _Effects) -> Fault:
    """Return a fault whose cause also names the subjects that fail because of it, or because of one
    that does: at most 10 by name, nearest first. Without any it is the fault itself.
    """
    causes = [fault.path_and_subject]
    seen = set(causes)
    for cause in causes:  # to which each effect is appended
        for effect in effects[cause]:
            if effect not in seen:
                seen.add(effect)
                causes.append(effect)
    failing = [f"{subject} ({path})" for path, subject in causes[1:]]
    if not failing:
        return fault
    names = listed(failing, "and", _SHOWN_NAMES)
    return replace(fault, cause=f"{fault.cause}. What fails for that: {names}")


def findings(check: str, cluster: str, faults: Sequence[Fault]) -> Iterator[Finding]:
    """Yield the findings of one check in one cluster: one for each cause, with all its objects.

    Without faults that is one finding of level `ok`, whose `name` is the check's. Names, causes and
    fixes are on one line, and only commands are between backticks, because tenants choose some of
    the words. A finding names at most 10 objects, its commands at most 20.

    Args:
        check: Name of the check; a fault may have another for its finding.
        cluster: Name of the cluster, for a finding without faults; a fault has its own `path`.
        faults: What the check found.
    """
    if not faults:
        yield Finding(Level.OK, cluster, "check", check, "", check=check)
    for group in _by_cause(faults):
        first = group[0]
        names = list(dict.fromkeys(fault.name for fault in group))
        fix = with_names(first.fix, names)
        yield Finding(
            level=first.level,
            path=first.path,
            kind=first.kind,
            name=on_one_line_without_backticks(listed(names, "and", _SHOWN_NAMES)),
            cause=on_one_line_without_backticks(first.cause),
            fix=short_line(sentence(fix), _FIX_CHARACTERS),
            check=first.check or check,
            commands=commands_of(fix),
        )


def _by_cause(faults: Iterable[Fault]) -> Iterable[list[Fault]]:
    """Group faults that one finding can report: of the same check, level and kind, with the same
    key, or without a key with the same cause and fix. Groups and faults stay in their order.
    """
    groups = defaultdict[tuple[object, ...], list[Fault]](list)
    for fault in faults:
        cause = (fault.key,) if fault.key else (fault.cause, fault.fix)
        groups[fault.check, fault.level, fault.kind, *cause].append(fault)
    return groups.values()


def with_names(fix: Fix, names: Sequence[str]) -> Fix:
    """Return a fix with the names of these objects in its commands, in place of the markers.

    A command with NAMES takes all objects of a namespace, and is repeated for each namespace. Other
    commands take the first object only. At most 20 objects are named. Text between commands gets
    `'` for each backtick, and keeps its line breaks. A command is cut to 20,000 characters.

    `names` are as in Fault, at least one: without any, all commands are left out. They are not
    quoted for a shell.
    """
    names_by_namespace = defaultdict[str, list[str]](list)
    for name in names[:_NAMES_IN_COMMAND]:
        namespace, _, name_inside = name.rpartition("/")
        names_by_namespace[namespace].append(name_inside)
    parts = list[str | Command]()
    for part in fix:
        if isinstance(part, str):
            parts.append(part.replace("`", "'"))
        else:
            parts.extend(join_commands(_commands_for(part, names_by_namespace), ", "))
    return tuple(parts)


def join_commands(commands: Iterable[Command], between: str) -> Fix:
    """Return these commands as a fix, with this text between them; () without commands."""
    parts = list[str | Command]()
    for command in commands:
        parts += [between, command]
    return tuple(parts[1:])


def _commands_for(
    command: Command, names_by_namespace: Mapping[str, Sequence[str]]
) -> Iterator[Command]:
    """Yield the command with names for each namespace, or for the first one if it has no NAMES.

    `names_by_namespace` has "" for names without a namespace.
    """
    for namespace, names in names_by_namespace.items():
        line = command.line.replace(NAMESPACE, namespace)
        line = line.replace(NAMES, " ".join(names)).replace(NAME, names[0])
        yield Command(short_line(line, _FIX_CHARACTERS))
        if NAMES not in command.line:
            return


def on_one_line_without_backticks(words: str) -> str:
    """Return text on one line with `'` for each backtick: no tenant writes a command into it.

    Without control characters, and cut to 2000 characters.
    """
    return short_line(words).replace("`", "'")
