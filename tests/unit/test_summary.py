"""The end of an update on a screen."""

import io

from rich.console import Console

from kai_fleet_cli.engine.report import Report, show_teams


def test_on_80_columns_no_name_and_no_address_is_broken():
    team, server = "research-and-development-of-models", "https://a-long-name.example.org:31000"
    about = {"mode": "virtual", "scheduler": "v0.16.8", "gpus": 8, "server": server}
    queues = [f"department-{number}-of-the-laboratory" for number in range(4)]
    console = Console(width=80, file=io.StringIO())
    report = Report(outputs={"teams": {team: {**about, "queues": queues}}})
    show_teams("lab", report, ("nodes",), console, compared=False)
    text = console.file.getvalue()
    assert all(word in text for word in (team, server, "KAI v0.16.8", *queues))
