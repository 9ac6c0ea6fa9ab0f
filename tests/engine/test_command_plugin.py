"""Commands by the Command provider on PATH, official or stand-in, and what is read by them."""

from pathlib import Path

import pulumi
import pulumi_command as command
import pulumi_kubernetes as k8s
import pytest

from tests.engine.bare_engine import Engine, changed

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_a_secret_environment_is_kept_and_what_is_printed_is_in_clear(
    engine: Engine, unique: str
) -> None:
    hidden = f"hidden-{unique}"

    def program(logging: command.local.Logging | None = None) -> None:
        made = command.local.Command(
            "quiet",
            create='printf "%s\\n" "${#TOKEN}"; printf "seen\\n" >&2',
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
    assert (stdout.value, stdout.secret) == (str(len(hidden)), False), "so no command prints one"
    assert changed(engine.up(program)) == {}


def test_a_command_runs_at_its_time(engine: Engine, tmp_path: Path) -> None:
    log = tmp_path / "log"

    def program(trigger: str = "t", word: str = "w", broken: bool = False) -> None:
        made = command.local.Command(
            "steps",
            create=f"echo create >> {log}; echo given; exit {3 if broken else 0}",
            update=f'echo "update after $PULUMI_COMMAND_STDOUT" >> {log}; echo $WORD',
            delete=f'echo "delete after $PULUMI_COMMAND_STDOUT" >> {log}',
            environment={"WORD": word},
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
