"""What the project is made of: pinned, with checksums, under licences that fit; and few rights."""

import json
import re
import subprocess
import tomllib
from http.server import BaseHTTPRequestHandler

import pytest

from kai_fleet.provider import version
from kai_fleet_cli.plan import offline
from kai_fleet_cli.stack_file import reading
from kai_fleet_cli.stack_file.reading import ROOT
from sandbox.tools import path_tools
from sandbox.tools.table import PathCheck
from tests.unit.components.cluster import http_server

EXACT = re.compile(r"v?\d+\.\d+\.\d+")
STACKS = reading.stacks()
PLUGIN = ROOT / ".venv" / "bin" / "pulumi-resource-kai-fleet"
# Kinds by which rights are given.
RIGHTS = ("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")


def test_every_locked_package_has_checksums():
    for package in tomllib.loads((ROOT / "uv.lock").read_text())["package"]:
        if "registry" not in package["source"]:
            continue
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        assert files, package["name"]
        for file in files:
            assert re.fullmatch(r"sha256:[0-9a-f]{64}", file["hash"]), package["name"]


@pytest.fixture(scope="module")
def declared():
    found = [resource for name in STACKS for resource in offline.plan(name).resources]
    assert len(found) > 50
    return found


def test_every_chart_is_of_one_version(declared):
    releases = [each for each in declared if each.type == "kubernetes:helm.sh/v3:Release"]
    assert len(releases) >= len(STACKS)
    for release in releases:
        assert EXACT.fullmatch(release.inputs["version"]), release.urn


def test_what_is_declared_gives_no_right_to_everything(declared):
    """Only accounts of team stacks get rights: charts bring theirs, docs/supply.md lists them."""
    for each in declared:
        if each.type.rsplit(":", 1)[-1] in RIGHTS:
            assert too_much(each.inputs) == [], each.urn


def too_much(inputs):
    """What of a role or a binding is more than anything of this project needs."""
    found = [
        f"{key}: {value}"
        for rule in inputs.get("rules") or []
        for key in ("apiGroups", "resources", "verbs")
        for value in rule.get(key) or []
        if value in ("*", "escalate", "bind", "impersonate")
        and not (value == "bind" and rule.get("resourceNames"))  # of one role, by its name
    ]
    if (inputs.get("roleRef") or {}).get("name") in ("cluster-admin", "admin"):
        found.append(f"roleRef: {inputs['roleRef']['name']}")
    return found


def licences(*arguments):
    """As `make check` asks: by the list in pyproject.toml."""
    command = [str(ROOT / ".venv" / "bin" / "pip-licenses"), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_licences_are_allowed():
    ran = licences()
    assert ran.returncode == 0, ran.stderr


def test_a_licence_that_is_not_listed_or_not_given_is_refused():
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pip-licenses"]
    listed = allowed["allow-only"].split(";")
    assert not [text for text in listed if re.search(r"GPL|GNU|SSPL|BUSL|Propriet|Commerc", text)]
    ran = licences("--allow-only", "MIT")
    assert ran.returncode == 1
    assert "not in allow-only licenses" in ran.stderr
    not_given = licences("--ignore-packages", "pytest")  # the checkout, which has none, is back
    assert not_given.returncode == 1
    assert "license UNKNOWN" in not_given.stderr


@pytest.fixture
def service():
    """A service of the OSV kind that knows something against PyYAML, and nothing else."""
    known = {"id": "PYSEC-2026-1", "modified": "2026-01-01T00:00:00Z", "summary": "it is broken"}
    affected = {"package": {"name": "pyyaml", "ecosystem": "PyPI"}, "versions": []}

    class Handler(BaseHTTPRequestHandler):
        bad = True

        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
            hit = [{"id": known["id"], "modified": known["modified"]}]
            self.answer(
                {
                    "results": [
                        {"vulns": hit} if self.bad and query["package"]["name"] == "pyyaml" else {}
                        for query in asked
                    ]
                }
            )

        def do_GET(self):
            self.answer({**known, "affected": [affected], "references": []})

        def answer(self, document):
            content = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http_server.listening(Handler) as server:
        yield f"http://127.0.0.1:{server.server_port}/", Handler


def test_a_known_vulnerability_fails_and_a_service_out_of_reach_does_not(service, monkeypatch):
    """`make check` lets exit code 2 pass."""
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    assert "uv audit --frozen --no-progress || [ $$? = 2 ]" in (ROOT / "Makefile").read_text()

    def audit(url):
        command = [str(ROOT / ".venv/bin/uv"), "audit", "--frozen", "--service-url", url]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    found = audit(service[0])
    assert found.returncode == 1
    assert "PYSEC-2026-1" in found.stdout and "pyyaml" in found.stdout
    service[1].bad = False
    assert audit(service[0]).returncode == 0
    assert audit("http://127.0.0.1:9/").returncode == 2


def test_the_version_is_said_once():
    reported = version()
    changes = (ROOT / "CHANGELOG.md").read_text()
    released = [line for line in changes.splitlines() if re.match(r"## \d", line)]
    assert released[0].startswith(f"## {reported} (")
    assert path_tools.ask_version(PLUGIN, PathCheck()) == reported
