"""The provider plugins on PATH, official or stand-in, under the real engine and API server."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulumi
import pulumi_command as command
import pulumi_kubernetes as k8s
import pytest
from pulumi import automation

pytestmark = pytest.mark.engine

Program = Callable[[], None]


class Engine:
    """One stack on the sandbox, and what its last operation printed."""

    def __init__(self, sandbox: Any, directory: Path) -> None:
        self.sandbox = sandbox
        self.name = f"providers-{uuid.uuid4().hex[:8]}"
        self.printed = ""
        self.stack = automation.create_stack(
            self.name,
            project_name="providers",
            program=lambda: None,
            opts=automation.LocalWorkspaceOptions(
                work_dir=str(directory),
                env_vars=sandbox.env(),
                pulumi_command=automation.PulumiCommand(root=str(sandbox.directory)),
            ),
        )

    def _run(self, operation: Callable[..., Any], program: Program | None, **options: Any) -> Any:
        lines: list[str] = []
        if program is not None:
            options["program"] = program
        try:
            return operation(on_output=lines.append, **options)
        finally:
            self.printed = "\n".join(lines)

    def up(self, program: Program) -> dict[str, int]:
        """The number of resources by what was done to them."""
        result = self._run(self.stack.up, program)
        return dict(result.summary.resource_changes or {})

    def preview(self, program: Program) -> dict[str, int]:
        result = self._run(self.stack.preview, program)
        return {str(getattr(k, "value", k)): n for k, n in result.change_summary.items()}

    def refresh(self) -> dict[str, int]:
        result = self._run(self.stack.refresh, None)
        return dict(result.summary.resource_changes or {})

    def destroy(self) -> None:
        self._run(self.stack.destroy, None)

    def fails(self, program: Program) -> str:
        with pytest.raises(automation.CommandError) as caught:
            self.up(program)
        return f"{caught.value}\n{self.printed}"

    def state(self) -> str:
        """The stack's state as it is kept, its secrets encrypted."""
        return self._tool("pulumi", "stack", "export", "--stack", self.name)

    def kubectl(self, *arguments: str) -> str:
        return self._tool("kubectl", *arguments)

    def _tool(self, name: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.sandbox.directory / "bin" / name), *arguments],
            env={**os.environ, **self.sandbox.env()},
            cwd=self.stack.workspace.work_dir,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 0 or "NotFound" in done.stderr, done.stderr
        return done.stdout.strip()

    def field(self, path: str, *of: str) -> str:
        return self.kubectl("get", *of, "-o", f"jsonpath={{{path}}}")


@pytest.fixture
def engine(sandbox: Any, tmp_path: Path) -> Iterator[Engine]:
    found = Engine(sandbox, tmp_path)
    yield found
    found.destroy()
    found.stack.workspace.remove_stack(found.name)


@pytest.fixture
def unique() -> str:
    """A name that no other test uses."""
    return f"p{uuid.uuid4().hex[:8]}"


def changed(counts: dict[str, int]) -> dict[str, int]:
    return {what: count for what, count in counts.items() if what not in ("same", "read")}


def crd(plural: str) -> k8s.apiextensions.v1.CustomResourceDefinition:
    kind = plural.capitalize()
    schema = {"type": "object", "x_kubernetes_preserve_unknown_fields": True}
    return k8s.apiextensions.v1.CustomResourceDefinition(
        plural,
        metadata={"name": f"{plural}.providers.test"},
        spec={
            "group": "providers.test",
            "scope": "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}
                    },
                }
            ],
        },
    )


def test_a_namespace_a_crd_and_its_objects(engine: Engine, unique: str) -> None:
    def program(quota: str = "5", gpus: int = 2, name: str = "first") -> None:
        namespace = k8s.core.v1.Namespace(unique, metadata={"name": unique})
        k8s.core.v1.ResourceQuota(
            "quota",
            metadata={"name": "gpus", "namespace": namespace.metadata.name},
            spec={"hard": {"requests.nvidia.com/gpu": gpus, "limits.cpu": "2000m"}},
        )
        defined = crd(unique)
        k8s.apiextensions.CustomResource(
            "object",
            api_version="providers.test/v1",
            kind=unique.capitalize(),
            metadata={"name": f"{unique}-{name}"},
            spec={"resources": {"gpu": {"quota": quota, "limit": -1}}},
            opts=pulumi.ResourceOptions(depends_on=[defined]),
        )

    previewed = engine.preview(program)
    assert previewed == {"create": 5}
    assert engine.kubectl("get", "namespace", unique, "--ignore-not-found") == ""

    assert engine.up(program) == {"create": 5}
    of = (f"{unique}.providers.test", f"{unique}-first")
    assert engine.field(".spec.resources.gpu.quota", *of) == "5"
    assert engine.field(".metadata.namespace", *of) == ""
    assert engine.field(".spec.hard", "resourcequota", "gpus", "-n", unique) == (
        '{"limits.cpu":"2","requests.nvidia.com/gpu":"2"}'
    )

    assert engine.up(program) == {"same": 5}

    assert changed(engine.up(lambda: program(quota="7"))) == {"update": 1}
    assert engine.field(".spec.resources.gpu.quota", *of) == "7"

    engine.kubectl("patch", *of, "--type=merge", "-p", '{"spec":{"resources":null}}')
    engine.refresh()
    assert changed(engine.up(lambda: program(quota="7"))) == {"update": 1}
    assert engine.field(".spec.resources.gpu.quota", *of) == "7"

    assert changed(engine.up(lambda: program(quota="7", name="second"))) == {"replace": 1}
    assert engine.field(".metadata.name", *of[:1]) == ""
    assert engine.field(".items[*].metadata.name", *of[:1]) == f"{unique}-second"

    engine.destroy()
    assert engine.kubectl("get", "namespace", unique, "--ignore-not-found") == ""
    assert engine.kubectl("get", "crd", f"{unique}.providers.test", "--ignore-not-found") == ""


def test_a_removed_field_goes_and_foreign_fields_stay(engine: Engine, unique: str) -> None:
    def program(labels: dict[str, str]) -> None:
        k8s.core.v1.Namespace(unique, metadata={"name": unique, "labels": labels})

    engine.up(lambda: program({"a": "1", "b": "1"}))
    engine.kubectl("label", "namespace", unique, "foreign=kept")
    assert changed(engine.up(lambda: program({"a": "2"}))) == {"update": 1}
    labels = json.loads(engine.field(".metadata.labels", "namespace", unique))
    assert labels["a"] == "2"
    assert "b" not in labels
    assert labels["foreign"] == "kept"


def test_an_object_deleted_by_hand_comes_back_after_a_refresh(engine: Engine, unique: str) -> None:
    def program() -> None:
        k8s.core.v1.ServiceAccount("account", metadata={"name": unique, "namespace": "default"})

    engine.up(program)
    engine.kubectl("delete", "serviceaccount", unique, "-n", "default")
    assert engine.refresh().get("delete") == 1
    assert engine.up(program).get("create") == 1


def test_names_are_made_where_none_is_given(engine: Engine, unique: str) -> None:
    def program(data: str = "one") -> None:
        made = k8s.core.v1.ConfigMap(unique, data={"key": data})
        pulumi.export("name", made.metadata.name)

    engine.up(program)
    first = engine.stack.outputs()["name"].value
    assert first.startswith(f"{unique}-")
    assert len(first) == len(unique) + 9
    assert engine.field(".data.key", "configmap", first, "-n", "default") == "one"
    # Its content is fixed, and its name is free: the new one comes before the old one goes.
    assert changed(engine.up(lambda: program("two"))) == {"replace": 1}
    second = engine.stack.outputs()["name"].value
    assert second != first
    assert engine.kubectl("get", "configmap", first, "--ignore-not-found") == ""


def test_a_secret_stays_secret(engine: Engine, unique: str) -> None:
    value = f"hidden-{unique}"

    def program() -> None:
        made = k8s.core.v1.Secret(
            "made",
            metadata={"name": unique, "namespace": "default"},
            string_data={"token": pulumi.Output.secret(value)},
        )
        read = k8s.core.v1.Secret.get("read", made.id)
        pulumi.export("token", read.data["token"])

    encoded = base64.b64encode(value.encode()).decode()
    engine.up(program)
    assert engine.field(".data.token", "secret", unique, "-n", "default") == encoded
    assert engine.stack.outputs()["token"].value == encoded
    assert engine.stack.outputs()["token"].secret
    assert value not in engine.printed
    for text in (value, encoded):
        assert text not in engine.state()
    assert changed(engine.up(program)) == {}
    engine.refresh()
    assert changed(engine.up(program)) == {}
    assert encoded not in engine.state()


def test_a_deployment_and_a_job_are_waited_for(engine: Engine, unique: str) -> None:
    def template(policy: str) -> dict[str, Any]:
        return {
            "metadata": {"labels": {"app": unique}},
            "spec": {"restartPolicy": policy, "containers": [{"name": "c", "image": "fake"}]},
        }

    def program(replicas: int = 2) -> None:
        k8s.apps.v1.Deployment(
            "deployment",
            metadata={"name": unique, "namespace": "default"},
            spec={
                "replicas": replicas,
                "selector": {"matchLabels": {"app": unique}},
                "template": template("Always"),
            },
        )
        k8s.batch.v1.Job(
            "job",
            metadata={"name": unique, "namespace": "default"},
            spec={"template": template("Never")},
        )

    engine.up(program)
    assert engine.field(".status.availableReplicas", "deployment", unique) == "2"
    assert engine.field(".status.succeeded", "job", unique) == "1"
    assert changed(engine.up(lambda: program(3))) == {"update": 1}
    assert engine.field(".status.availableReplicas", "deployment", unique) == "3"


def test_what_never_gets_ready_is_kept_and_tried_again(engine: Engine, unique: str) -> None:
    def program(seconds: str = "3", replicas: int = 1) -> None:
        k8s.apps.v1.Deployment(
            "stuck",
            metadata={
                "name": unique,
                "namespace": "default",
                "annotations": {"pulumi.com/timeoutSeconds": seconds},
            },
            spec={
                "replicas": replicas,
                "selector": {"matchLabels": {"app": unique}},
                "template": {
                    "metadata": {"labels": {"app": unique}},
                    "spec": {
                        "nodeSelector": {"no-such": "node"},
                        "containers": [{"name": "c", "image": "fake"}],
                    },
                },
            },
        )

    assert unique in engine.fails(program)
    assert unique in engine.state()
    assert changed(engine.up(lambda: program(replicas=0))) == {"update": 1}


def test_an_object_that_exists_is_not_taken_over(engine: Engine, unique: str) -> None:
    engine.kubectl("create", "namespace", unique)
    try:
        text = engine.fails(lambda: k8s.core.v1.Namespace("n", metadata={"name": unique}))
        assert f'namespaces "{unique}" already exists' in text
        assert unique not in engine.state()
    finally:
        engine.kubectl("delete", "namespace", unique)


def test_the_server_refuses_at_preview(engine: Engine) -> None:
    def program() -> None:
        k8s.core.v1.Namespace("wrong", metadata={"name": "Not_A_Name"})

    with pytest.raises(automation.CommandError) as caught:
        engine.preview(program)
    assert "Not_A_Name" in str(caught.value)


def chart(directory: Path, version: str = "1.0.0") -> str:
    (directory / "templates").mkdir(parents=True, exist_ok=True)
    (directory / "Chart.yaml").write_text(
        f"apiVersion: v2\nname: small\nversion: {version}\nappVersion: '9'\n"
    )
    (directory / "templates" / "map.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\n"
        "metadata: {name: {{ .Release.Name }}}\n"
        "data: {value: {{ .Values.value | quote }}}\n"
        "{{ if .Values.wrong }}---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: Not_A_Name}\n{{ end }}\n"
    )
    return str(directory)


def test_a_release_is_installed_upgraded_and_uninstalled(
    engine: Engine, unique: str, tmp_path: Path
) -> None:
    path = tmp_path / "chart"
    hidden = f"hidden-{unique}"

    def program(value: str = "one", name: str = unique) -> None:
        made = k8s.helm.v3.Release(
            "release",
            chart=str(path),
            name=name,
            namespace=unique,
            create_namespace=True,
            timeout=30,
            values={"value": value, "password": pulumi.Output.secret(hidden)},
        )
        pulumi.export("status", made.status.status)
        pulumi.export("revision", made.status.revision)
        pulumi.export("version", made.status.version)

    def outputs() -> tuple[Any, ...]:
        found = engine.stack.outputs()
        return tuple(found[key].value for key in ("status", "revision", "version"))

    chart(path)
    assert engine.preview(program)["create"] == 2
    assert engine.kubectl("get", "namespace", unique, "--ignore-not-found") == ""
    engine.up(program)
    assert outputs() == ("deployed", 1, "1.0.0")
    assert engine.field(".data.value", "configmap", unique, "-n", unique) == "one"
    assert hidden not in engine.state() + engine.printed
    assert changed(engine.up(program)) == {}

    assert changed(engine.up(lambda: program("two"))) == {"update": 1}
    assert outputs() == ("deployed", 2, "1.0.0")
    assert engine.field(".data.value", "configmap", unique, "-n", unique) == "two"

    chart(path, "1.1.0")
    assert changed(engine.up(lambda: program("two"))) == {"update": 1}
    assert outputs() == ("deployed", 3, "1.1.0")

    engine.refresh()
    assert changed(engine.up(lambda: program("two"))) == {}

    assert changed(engine.up(lambda: program("two", f"{unique}b"))) == {"replace": 1}
    assert engine.kubectl("get", "configmap", unique, "-n", unique, "--ignore-not-found") == ""
    engine.destroy()
    secrets = engine.kubectl("get", "secret", "-n", unique, "-o", "name")
    assert "sh.helm.release" not in secrets
    engine.kubectl("delete", "namespace", unique)


def test_a_release_that_failed_is_completed_by_the_next_run(
    engine: Engine, unique: str, tmp_path: Path
) -> None:
    path = chart(tmp_path / "chart")

    def program(wrong: bool) -> None:
        k8s.helm.v3.Release(
            "release",
            chart=path,
            name=unique,
            namespace="default",
            timeout=60,
            values={"value": "x", "wrong": wrong},
        )

    assert "Not_A_Name" in engine.fails(lambda: program(True))
    engine.up(lambda: program(False))
    assert engine.field(".data.value", "configmap", unique, "-n", "default") == "x"
    assert changed(engine.up(lambda: program(False))) == {}


def test_a_chart_that_is_not_there_is_said_at_preview(engine: Engine, tmp_path: Path) -> None:
    missing = tmp_path / "no-such-chart"

    with pytest.raises(automation.CommandError) as caught:
        engine.preview(lambda: k8s.helm.v3.Release("release", chart=str(missing)))
    assert "no-such-chart" in str(caught.value)
    assert "check the chart name and repository configuration" in str(caught.value)


def test_a_command_keeps_its_secrets(engine: Engine, unique: str) -> None:
    hidden = f"hidden-{unique}"

    def program(logging: command.local.Logging | None = None) -> None:
        made = command.local.Command(
            "quiet",
            create='printf "%s\\n" "$TOKEN"; printf "seen\\n" >&2',
            environment={"TOKEN": pulumi.Output.secret(hidden)},
            logging=command.local.Logging.NONE,
        )
        pulumi.export("stdout", made.stdout)
        command.local.Command("loud", create="echo told-" + unique, logging=logging)

    engine.up(program)
    assert hidden not in engine.printed
    assert hidden not in engine.state()
    assert f"told-{unique}" in engine.printed
    stdout = engine.stack.outputs()["stdout"]
    assert (stdout.value, stdout.secret) == (hidden, True)
    assert changed(engine.up(program)) == {}


def test_a_command_runs_at_its_time(engine: Engine, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def program(trigger: str = "t", word: str = "w", broken: bool = False) -> None:
        made = command.local.Command(
            "steps",
            create=f"echo create >> {log}; cat; exit {3 if broken else 0}",
            update=f'echo "update after $PULUMI_COMMAND_STDOUT" >> {log}; echo $WORD',
            delete=f'echo "delete after $PULUMI_COMMAND_STDOUT" >> {log}',
            environment={"WORD": word},
            interpreter=["/bin/sh", "-eu", "-c"],
            dir=str(tmp_path),
            stdin="given",
            triggers=[trigger],
        )
        pulumi.export("stdout", made.stdout)

    engine.preview(program)
    assert not log.exists()
    engine.up(program)
    assert engine.stack.outputs()["stdout"].value == "given"
    assert changed(engine.up(lambda: program(word="new"))) == {"update": 1}
    assert engine.stack.outputs()["stdout"].value == "new"
    assert changed(engine.up(lambda: program("other", "new"))) == {"replace": 1}
    engine.destroy()
    assert log.read_text().splitlines() == [
        "create",
        "update after given",
        "create",
        "delete after new",
        "delete after given",
    ]


def test_a_command_that_fails_says_why(engine: Engine) -> None:
    text = engine.fails(
        lambda: command.local.Command("bad", create="echo the-reason >&2; exit 3") and None
    )
    assert "exit status 3" in text
    assert "the-reason" in text


def test_a_provider_whose_kubeconfig_is_unknown_at_preview(engine: Engine, unique: str) -> None:
    kubeconfig = engine.sandbox.kubeconfig

    def program(more: str = "") -> None:
        read = command.local.Command(
            "kubeconfig",
            create=f"cat {kubeconfig}{more}",
            logging=command.local.Logging.NONE,
            opts=pulumi.ResourceOptions(additional_secret_outputs=["stdout"]),
        )
        inside = pulumi.ResourceOptions(
            provider=k8s.Provider("inside", kubeconfig=read.stdout, cluster_identifier="one")
        )
        k8s.core.v1.Namespace("namespace", metadata={"name": unique}, opts=inside)
        k8s.apiextensions.CustomResource(
            "object",
            api_version="nowhere.test/v1",
            kind="Nothing",
            metadata={"name": unique},
            opts=inside,
        ) if more == "preview" else None

    assert engine.preview(lambda: program("preview")) == {"create": 5}
    engine.up(program)
    assert engine.field(".status.phase", "namespace", unique) == "Active"
    assert changed(engine.up(program)) == {}
    # A new kubeconfig of the same cluster keeps what is inside.
    again = changed(engine.up(lambda: program("; echo '# rotated'")))
    assert set(again) == {"update"}
