"""`fleet team …` and `fleet teams`: teams added, switched, removed, listed."""

from typing import Annotated

import typer

from kai_fleet.backup.arguments import BACKUP, VERIFY
from kai_fleet.names import FLEET
from kai_fleet.values import get, value_at
from kai_fleet_cli.commands import options
from kai_fleet_cli.display.terminal import confirm_name, print_table, require_answer, result
from kai_fleet_cli.engine import runs, workspace
from kai_fleet_cli.engine.environment import for_stack
from kai_fleet_cli.errors import UserError
from kai_fleet_cli.hosts import CLUSTER_ERRORS
from kai_fleet_cli.plan.picture import TEAM_COLUMNS, of_clusters
from kai_fleet_cli.stack_file.reading import settings_of
from kai_fleet_cli.teams import changes, renewal, state
from kai_fleet_cli.teams.ends import ends_of
from kai_fleet_stack.declared import clusters_of
from kai_fleet_stack.project import update_command

app = typer.Typer(help="Teams: add, switch, roll back, remove.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The team's name.")]
Version = Annotated[str, typer.Argument(help="A KAI version such as v0.16.8.")]
NoUp = Annotated[bool, typer.Option("--no-up", help="Write the file, and leave the update to you.")]


@app.command()
def add(
    name: Name,
    mode: Annotated[str, typer.Option(help="virtual, host or default.")],
    gpus: Annotated[int, typer.Option(help="The most whole GPUs it may hold.")],
    stack: options.StackFile = "sandbox",
    version: Annotated[str, typer.Option(help="Mode virtual: its KAI version.")] = "",
    pool: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE: a label of its nodes; repeatable.")
    ] = None,
    queue: Annotated[
        list[str] | None,
        typer.Option(help="NAME=GPUS: a queue of its own; repeatable. Mode host: NAME, its leaf."),
    ] = None,
    yes: options.Sure = False,
    no_up: NoUp = False,
) -> None:
    """Add a team."""
    labels = changes.key_values(pool or (), "--pool", f"kai-fleet/pool={name}")
    queues = dict.fromkeys(queue or (), "")
    if mode != "host":
        queues = changes.key_values(queue or (), "--queue", f"{name}=4")
    change = changes.add(
        changes.stack_file(stack),
        name,
        mode=mode,
        version=version,
        pool=labels,
        gpus=gpus,
        queues=queues,
    )
    if changes.carry_out(change, yes=yes, no_up=no_up):
        result(f"Next: {FLEET} team kubeconfig {name} --stack {stack} --output {name}.kubeconfig")


@app.command()
def switch(
    name: Name,
    version: Version,
    stack: options.StackFile = "sandbox",
    yes: options.Sure = False,
    no_up: NoUp = False,
) -> None:
    """Give a team another KAI version; its queues and running pods stay."""
    file = changes.stack_file(stack)
    changes.carry_out(changes.switch(file, file.team(name), version), yes=yes, no_up=no_up)


@app.command()
def rollback(
    name: Name, stack: options.StackFile = "sandbox", yes: options.Sure = False, no_up: NoUp = False
) -> None:
    """Give a team the KAI version that it ran before, as the stack's history has it."""
    file = changes.stack_file(stack)
    team = file.team(name)
    changes.own_kai_version(file, team)  # refuses a team without a KAI before the history is read
    version = state.earlier_version(stack, team)
    if version is None:
        raise UserError(
            f"stack {stack} has no update in which team {name} ran another version than"
            f" {team.version}; run: .venv/bin/fleet team switch {name} VERSION --stack {stack}"
        )
    changes.carry_out(changes.switch(file, team, version), yes=yes, no_up=no_up)


@app.command()
def remove(
    name: Name, stack: options.StackFile = "sandbox", yes: options.Sure = False, no_up: NoUp = False
) -> None:
    """Remove a team with everything in it; its name has to be typed, or --yes given."""
    file = changes.stack_file(stack)
    changes.carry_out(changes.remove(file, file.team(name)), yes=yes, no_up=no_up)


@app.command()
def renew(name: Name, stack: options.StackFile = "sandbox", yes: options.Sure = False) -> None:
    """End every kubeconfig of a team that was handed out, as after somebody left; pods go on.

    Its vCluster gets a new authority and restarts, and an update writes new kubeconfigs. The name
    has to be typed, or --yes given. After a run that was cut off, the same command goes on.
    """
    require_answer(
        f"{FLEET} team renew {name} --stack {stack}",
        f"every kubeconfig of team {name} would end",
        yes=yes,
    )
    old = state.kubeconfig_of(changes.stack_file(stack), name)
    if not yes:
        confirm_name(name, "end every kubeconfig of it")
    renewal.renew(stack, name, old)
    runs.up(workspace.open_stack(stack, for_stack(stack).variables))
    result(
        f"Done: every kubeconfig of team {name} from before is refused. Administrators, and CI that"
        f" has one as a secret, take the new one: {FLEET} team kubeconfig {name} --stack {stack}"
        f" --output {name}.kubeconfig. Stacks that read this stack's outputs get it by their next"
        " update. Files of team kubeconfig --oidc and of team credentials are as they were."
    )


@app.command()
def kubeconfig(
    name: Name,
    stack: options.StackFile = "sandbox",
    output: options.Output = None,
    oidc: Annotated[
        bool, typer.Option("--oidc", help="For people, who log in at the team's identity provider.")
    ] = False,
) -> None:
    """Print a team's kubeconfig, or write it: whoever has it is that vCluster's administrator.

    With --oidc it holds no credentials: each person logs in, and may do what their groups may.
    """
    file = changes.stack_file(stack)
    team = file.team(name)
    provider = settings_of(stack).teams[name].vcluster.oidc if oidc else None
    if oidc and provider is None:
        raise UserError(
            f"team {name} has no identity provider; write vcluster: {{oidc: {{issuer: https://…,"
            f" clientId: kubernetes}}}} at {team.path} in {file.path.name}, then run:"
            f" {update_command(stack)}"
        )
    content = state.kubeconfig_of(file, name)
    if provider is not None:
        content = state.for_people(content, provider)
    options.write_private(content, output, f"kubectl fleet queues --kubeconfig {output}")


@app.command()
def credentials(
    team: str,
    stack: Annotated[str, typer.Option("--stack", "-s", help="The platform's stack.")] = "sandbox",
    days: Annotated[int, typer.Option("--days", min=1, max=365, help="How long it works.")] = 30,
    output: options.Output = None,
) -> None:
    """Print or write a kubeconfig for a team's own stack: the rights that the platform grants."""
    file = changes.stack_file(stack)
    if file.is_team_stack:
        raise UserError(f"stack {stack} is a team stack; name its platform's: --stack …")
    context = value_at(file.raw, "cluster.context")
    if not isinstance(context, str):
        raise UserError(
            f"Pulumi.{stack}.yaml names no context of your kubeconfig; for a platform that keeps a"
            " kubeconfig as a secret, make the token by hand: see docs/team-stacks.md"
        )
    variables = for_stack(stack).variables
    content = state.of_account(team, context, days, stack, variables.get("KUBECONFIG"))
    options.write_private(content, output)


def teams(stack: options.StackFile = "sandbox", as_json: options.AsJson = False) -> None:
    """The teams of a stack: schedulers declared and running, GPUs, nodes, and what ends next."""

    settings = settings_of(stack)
    outputs: object = {}
    notes: list[str] = []
    try:
        outputs = state.read(stack)
    except UserError as error:
        notes.append(str(error))
    if granted := ", ".join(sorted(settings.team_stacks)):
        notes.append(f"teams with a stack of their own are listed there: {granted}")
    ages: dict[str, str] = {}
    if any(team.backup for team in settings.teams.values()):
        try:
            ages = state.backup_ages(stack)
        except CLUSTER_ERRORS as error:
            notes.append(f"when backups were taken cannot be read: {error}")
    running = state.versions_of(outputs)
    columns = [*TEAM_COLUMNS[:3], "running", *TEAM_COLUMNS[3:], "backup", "verified", "ends"]
    rows: list[list[str]] = []
    records: list[dict[str, object]] = []
    for declared in of_clusters(clusters_of(settings)).teams:
        name = declared[0]
        version = running.get(name)
        row = [
            *declared[:3],
            version or "-",
            *declared[3:],
            ages.get(f"{BACKUP}-{name}", "-"),
            ages.get(f"{VERIFY}-{name}", "-"),
        ]
        kubeconfig = get(outputs, "kubeconfigs", name)
        ends = ends_of(str(kubeconfig), version or declared[2].rpartition(" ")[2], declared[3])
        rows.append([*row, *ends[:1]])
        records.append({**dict(zip(columns, row, strict=False)), "ends": ends})
    if as_json:
        options.print_json({"teams": records, "notes": notes})
        return
    print_table(columns, rows)
    for note in notes:
        result(f"- {note}")
