"""Which cluster `kubectl fleet` asks, as whom: kubeconfigs as kubectl reads them."""

import json
import ssl
import stat

import pytest
import trustme

from tests.unit.components.cluster.canned_api import kubeconfig, serving
from tests.unit.kubectl.team_cluster import PATHS


def test_kubeconfig_and_context_are_chosen(team, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    sentence = "error: the kubeconfig can't be used: /dev/null is not there; write --kubeconfig"
    assert team.run("pods").startswith(sentence)
    of_nobody = team.run("pods", "--kubeconfig", "~nobody-has-this-home/config")
    assert "~nobody-has-this-home/config is not there; write --kubeconfig" in of_nobody
    assert "whole" in team.run("pods", "--kubeconfig", team.file)
    assert "whole" in team.run("pods", "--kubeconfig", team.file, "--context", "lab")
    found = team.run("pods", "--kubeconfig", team.file, "--context", "other")
    assert found.endswith("it has no context other; write --context with one of: lab")


def test_several_files_are_one_kubeconfig_and_the_first_entry_counts(team, monkeypatch, tmp_path):
    first = tmp_path / "first"
    first.write_text("current-context: lab\nusers: [{name: me, user: {token: mine}}]\n")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{tmp_path / 'absent'}:{team.file}")
    assert "whole" in team.run("pods")
    assert tokens(team) == {"Bearer mine"}


def test_an_empty_file_is_skipped_and_a_deep_one_is_told(team, monkeypatch, tmp_path):
    empty = tmp_path / "empty"
    empty.touch()
    monkeypatch.setenv("KUBECONFIG", f"{empty}:{team.file}")
    assert "whole" in team.run("pods")
    deep = tmp_path / "deep"
    deep.write_text("[" * 3000)
    assert "nested too deeply" in team.run("pods", "--kubeconfig", str(deep))


def tokens(team):
    return {headers["Authorization"] for headers in team.handler.headers_seen}


@pytest.mark.parametrize(
    ("user", "cluster", "words"),
    [
        ({"token": "t", "as": "root"}, {}, "has as, which works with kubectl only"),
        ({"auth-provider": {"name": "oidc"}}, {}, "has auth-provider"),
        ({"token": "t"}, {"tls-server-name": "x"}, "has tls-server-name"),
        ({"token": ["t"]}, {}, "the kubeconfig can't be used"),
        ({"client-certificate": "absent.pem", "client-key": "absent.pem"}, {}, "can't be used"),
    ],
)
def test_what_would_be_another_request_than_meant_is_refused(team, tmp_path, user, cluster, words):
    file = tmp_path / "odd"
    file.write_text(kubeconfig("https://127.0.0.1:1", user=user, **cluster))
    assert words in team.run("pods", "--kubeconfig", str(file))
    assert team.handler.asked == []


@pytest.mark.parametrize(
    ("server", "more"),
    [("http://x:notaport", {}), ("http://127.0.0.1:1", {"proxy-url": "http://x:notaport"})],
)
def test_a_port_that_is_no_number_is_told(team, tmp_path, server, more):
    file = tmp_path / "odd"
    file.write_text(kubeconfig(server, **more))
    told = team.run("pods", "--kubeconfig", str(file))
    assert told == "error: the kubeconfig can't be used: Invalid port: 'notaport'"


def test_what_is_no_kubeconfig_is_quoted_to_nobody(team, tmp_path):
    file = tmp_path / "odd"
    file.write_text("token: 'secret\n")
    assert team.run("pods", "--kubeconfig", str(file)).endswith("it is not YAML")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_credential_plugin_runs_once_and_its_token_is_sent(team, tmp_path, version):
    script = tmp_path / "plugin"
    answer = json.dumps({"status": {"token": "from-plugin"}})
    script.write_text(f"#!/bin/sh\necho $TEAM >> {tmp_path}/ran\necho '{answer}'\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    plugin = {
        "apiVersion": f"client.authentication.k8s.io/{version}",
        "command": str(script),
        "env": [{"name": "TEAM", "value": "ml"}],
        "interactiveMode": "IfAvailable",
    }
    file = tmp_path / "file"
    file.write_text(kubeconfig(team.url, user={"exec": plugin}))
    assert "whole" in team.run("pods", "--kubeconfig", str(file))
    assert (tmp_path / "ran").read_text() == "ml\n"
    assert tokens(team) == {"Bearer from-plugin"}
    script.write_text("#!/bin/sh\necho not logged in >&2; exit 1\n")
    text = team.run("pods", "--kubeconfig", str(file))
    assert "plugin hands out no token" in text and "not logged in" in text
    team.handler.asked.clear()
    gone = plugin | {"command": "gone", "installHint": "Get"}
    file.write_text(kubeconfig(team.url, user={"exec": gone}))
    text = team.run("pods", "--kubeconfig", str(file))
    assert "gone hands out no token" in text and text.endswith("; Get")
    assert team.handler.asked == [], "nothing is asked anonymously"


def test_a_proxy_of_the_kubeconfig_is_used(team, tmp_path):
    """The server stands for a proxy: it is asked with whole addresses."""
    file = tmp_path / "proxied"
    file.write_text(kubeconfig("http://kai.test", **{"proxy-url": team.url}))
    for path in PATHS.values():
        team.handler.answers[f"http://kai.test{path}"] = team.handler.answers[path]
    assert "whole" in team.run("pods", "--kubeconfig", str(file))


def test_certificates_from_files_beside_the_kubeconfig(team, tmp_path):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    mine = authority.issue_cert("me@team").private_key_and_cert_chain_pem
    mine.write_to_path(str(tmp_path / "me.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    user, trusted = {"client-certificate": "me.pem", "client-key": "me.pem"}, "ca.pem"
    with serving(context) as (handler, url):
        handler.answers |= team.handler.answers
        file = tmp_path / "tls"
        file.write_text(kubeconfig(url, user=user, **{"certificate-authority": trusted}))
        assert "whole" in team.run("pods", "--kubeconfig", str(file))
        file.write_text(kubeconfig(url, **{"certificate-authority": trusted}))
        assert "can't be read" in team.run("pods", "--kubeconfig", str(file))
        file.write_text(kubeconfig(url, user=user))
        assert "CERTIFICATE_VERIFY_FAILED" in team.run("pods", "--kubeconfig", str(file))
