"""Each row of docs/faults.md names a test that breaks a real engine so, or tests the message."""

import ast
from types import SimpleNamespace

import pytest

from kai_fleet_cli.stack_file.reading import ROOT
from tests.faults.case import Ran
from tests.faults.desired import Followed

FAULTS, HOLD_UPS = "tests/faults", "tests/attacks/test_hold_ups.py"
KILLS = f"{FAULTS}/test_kills.py"
TROUBLES = f"{FAULTS}/test_host_troubles.py"
CLUSTERS = f"{FAULTS}/test_clusters.py"
BY_HAND = f"{FAULTS}/test_removed_by_hand.py"
STATE = f"{FAULTS}/test_state.py"
MESSAGES = "tests/unit/cli/recovery/test_failures.py"
SECRET = f"{HOLD_UPS}::test_what_a_tenant_does_to_its_secret_holds_up_its_own_team"
# By the beginning of the first cell. Each runs what is printed; the last rows are messages only.
WALKS = {
    "the engine was killed": f"{KILLS}::test_killed_in_the_middle",
    "another run holds the lock": f"{STATE}::test_two_updates_at_once",
    "the last run did not finish": f"{KILLS}::test_killed_while_a_release_is_made",
    "Ctrl-C, SIGTERM": f"{TROUBLES}::test_an_interrupted_update_goes_on_by_the_printed_command",
    "a Helm release is half done": f"{KILLS}::test_killed_while_a_release_is_made",
    "a hook of a Helm release": f"{KILLS}::test_killed_while_a_hook_of_a_release_runs",
    "a namespace that is deleted does not go": (
        f"{BY_HAND}::test_a_namespace_that_does_not_go_is_told_while_the_removal_waits"
    ),
    "somebody deleted a namespace, a release": (
        f"{FAULTS}/test_drift.py::test_everything_is_there_again_as_it_was"
    ),
    "a removal was cut off": f"{KILLS}::test_killed_while_a_team_is_removed",
    "the state of the stack is lost": (
        "tests/engine/test_lost_state.py::test_a_lost_state_names_the_page_and_opens_no_guard"
    ),
    "a release was uninstalled by hand": f"{BY_HAND}::test_it_is_gone_already",
    "a vCluster's Service or control plane": (
        f"{TROUBLES}::test_a_part_of_a_vcluster_is_deleted_by_hand"
    ),
    "a pod cannot start": "tests/engine/test_readiness.py::test_the_next_run_goes_on_and_ends_well",
    "a node is cordoned": (f"{TROUBLES}::test_nodes_are_cordoned_while_a_vcluster_is_to_start"),
    "a part of KAI, or a control plane": f"{TROUBLES}::test_a_control_plane_is_killed_for_memory",
    "a webhook of others is away": f"{TROUBLES}::test_a_webhook_of_others_is_away",
    "the host is gone for good": f"{TROUBLES}::test_the_host_is_gone_for_good",
    "a provider plugin was killed": f"{KILLS}::test_killed_in_the_middle",
    "the API server went away": f"{CLUSTERS}::test_the_api_server_is_killed_and_comes_back",
    "a vCluster's store is full": f"{HOLD_UPS}::test_a_full_store_is_told_what_keeps_its_data",
    "etcd is full": f"{CLUSTERS}::test_etcd_is_full",
    "etcd is away": f"{CLUSTERS}::test_etcds_disk_is_full",
    "a team's own cluster refuses": (
        f"{HOLD_UPS}::test_what_a_tenant_does_inside_holds_up_its_own_team"
    ),
    "somebody else made a queue": (
        "tests/engine/test_host_mode.py"
        "::test_a_queue_of_somebody_else_is_taken_over_by_the_printed_command"
    ),
    "a restore was cut off": (
        f"{FAULTS}/test_restore.py::test_a_killed_restore_is_named_by_the_doctor_and_goes_on"
    ),
    "a namespace, or the whole host": (
        f"{FAULTS}/test_restore.py::test_a_lost_namespace_comes_back_with_what_was_in_it"
    ),
    "the volume of a vCluster was deleted": (
        f"{FAULTS}/test_lost_volume.py::test_it_begins_anew_only_by_the_printed_command"
    ),
    "a vCluster began on an empty store": (
        f"{FAULTS}/test_emptied_vcluster.py"
        "::test_it_is_said_before_anything_begins_and_filled_by_the_printed_command"
    ),
    "a vCluster's Secret is gone": SECRET,
    "somebody else wrote a vCluster's Secret": SECRET,
    "a run went on beside a team that failed": (
        f"{STATE}::test_a_state_that_names_what_is_gone_is_repaired_by_the_printed_command"
    ),
    "the state is cut short": f"{STATE}::test_a_state_file_that_is_cut_short",
    "a run was killed while it wrote": (
        f"{STATE}::test_attributes_that_a_kill_left_empty_are_no_broken_state"
    ),
    "something of that name exists": f"{TROUBLES}::test_somebody_elses_release_has_the_name",
    # As messages only, which the page says.
    "a vCluster's release was uninstalled": (
        "tests/unit/cli/recovery/test_held_up.py::test_explain_names_the_team_what_refused_and_the_command"
    ),
    "the stack file is too large": f"{MESSAGES}::test_explain_says_what_to_do",
    "a chart registry fails": f"{MESSAGES}::test_explain_says_what_to_do",
    "a chart registry gives other content": f"{MESSAGES}::test_explain_says_what_to_do",
}


def rows():
    lines = (ROOT / "docs/faults.md").read_text().splitlines()
    cells = [line.split(" | ")[0].removeprefix("| ") for line in lines if line.startswith("| ")]
    return cells[1:]


@pytest.mark.parametrize("row", rows())
def test_a_row_names_the_test_that_walks_it(row):
    (walk,) = [test for words, test in WALKS.items() if row.startswith(words)]
    file, _, name = walk.partition("::")
    there = ast.walk(ast.parse((ROOT / file).read_text()))
    assert name in {node.name for node in there if isinstance(node, ast.FunctionDef)}


def test_no_walk_is_of_a_row_that_is_gone():
    assert [words for words in WALKS if not any(row.startswith(words) for row in rows())] == []


def follow(*printed):
    """Do what failed runs say, in a stack with team `ml`."""
    followed = Followed(SimpleNamespace(teams=lambda: {"ml"}))
    for command in printed:
        followed.next(
            Ran(1, f"error: x. Repair it with: {command}, then run the same command again")
        )


@pytest.mark.parametrize(
    "printed",
    [
        ["fleet team remove ml"],
        ["kubectl -n team-ml delete pvc data-ml-0"],
        ["kubectl delete -n team-ml secret/a persistentvolumeclaim/data-ml-0"],
        ["kubectl delete namespace team-ml"],
        ["fleet up --stack dev --yes ml"],
        ["fleet up --refresh", "fleet up --refresh"],
        ["a", "b", "c", "d"],
    ],
)
def test_the_walks_end_at_a_command_that_gives_up_or_is_printed_again(printed):
    with pytest.raises(AssertionError):
        follow(*printed)


def test_the_walks_follow_three_commands_that_keep_what_is_there():
    follow(
        "kubectl delete namespace kai-scheduler && fleet up --refresh",
        "pulumi cancel --yes --stack dev; fleet up --refresh --stack dev --yes dev",
        "kubectl -n team-ml patch pvc data-ml-0",
    )
