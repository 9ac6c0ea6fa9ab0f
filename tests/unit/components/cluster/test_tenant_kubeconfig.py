"""A vCluster's way in: three pieces of data are taken from what a tenant may have written."""

import base64
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import trustme
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kai_fleet.cluster.kube.api import Api
from kai_fleet.cluster.tenant_kubeconfig import (
    TenantKubeconfigError,
    explain,
    kubeconfig_of_secret,
    pieces,
    rebuild,
)
from tests.unit.components.cluster.vcluster_secrets import (
    CLUSTER,
    USER,
    Keys,
    config,
    data,
    encoded,
    keys,
    serving,
)

SERVER = "https://10.0.0.1:443"


def refused(given):
    with pytest.raises(TenantKubeconfigError) as why:
        kubeconfig_of_secret(given, SERVER, "team-ml-ml")
    assert "s3cret-value" not in str(why.value)
    assert "hostname" not in str(why.value)
    return why.value


def test_what_vcluster_writes_becomes_a_kubeconfig_for_the_address_that_is_known():
    built = yaml.safe_load(kubeconfig_of_secret(data(), SERVER, "team-ml-ml"))
    own = config(server=SERVER)
    own.pop("preferences")
    assert built == own


def test_it_lets_its_bearer_in():
    with serving() as (_, url):
        assert Api.of_kubeconfig(kubeconfig_of_secret(data(), url, "ml")).get("/version") == {
            "major": "1"
        }


def test_keys_of_every_kind_that_vcluster_writes_are_taken():
    ca = trustme.CA(key_type=trustme.KeyType.RSA)
    issued = ca.issue_cert("admin.example", key_type=trustme.KeyType.RSA)
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    certificate, built = issued.cert_chain_pems[0].bytes(), set()
    for form in (PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8):
        text = key.private_bytes(Encoding.PEM, form, NoEncryption())
        built.add(
            kubeconfig_of_secret(
                data(config(Keys(ca.cert_pem.bytes(), certificate, text))), SERVER, "ml"
            )
        )
    assert len(built) == 1


FORM = "has in its key config what vCluster does not write there"
PLANTED = [("users", "user", {key: value}) for key, value in USER.items()]
PLANTED += [("clusters", "cluster", {key: value}) for key, value in CLUSTER.items()]
PLANTED += [("contexts", "context", {"namespace": "x"}), ("users", "user", {"\x1b[2Js3cret": "x"})]


def planted(plural, singular, more):
    document = config(server=SERVER)
    document[plural][0][singular] |= more
    return document


@pytest.mark.parametrize("more", PLANTED)
def test_anything_but_certificates_is_refused_in_a_secret_and_in_a_state(more):
    assert str(refused(data(planted(*more)))) == FORM
    with pytest.raises(TenantKubeconfigError, match=FORM):
        rebuild(yaml.safe_dump(planted(*more)))


@pytest.mark.parametrize("plural", ["clusters", "users", "contexts"])
def test_there_is_one_of_each(plural):
    for entries in ([], config()[plural] + config()[plural], "x", None):
        assert str(refused(data(config() | {plural: entries}))) == FORM


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", FORM),
        ("users: &a []\nclusters: *a\n", FORM),
        ("users: !!python/object/apply:os.system ['touch m']", FORM),
        (yaml.safe_dump(config()) + "users: []\n", FORM),
        (yaml.safe_dump(config()) + "---\n{}\n", FORM),
        ("a: " + "[" * 20_000, FORM),
        ("users: " + "x" * 200_000, "holds more than 128 KiB at its key config"),
        ("\x00", FORM),
        ("\xff", "holds no plain text at its key config"),
    ],
)
def test_a_document_of_another_form_is_refused(text, says):
    assert str(refused(data() | {"config": encoded(text)})) == says


def test_what_a_vcluster_without_a_declared_context_writes_is_taken():
    document = config()
    document["clusters"][0]["name"] = document["contexts"][0]["context"]["cluster"] = "kubernetes"
    admin = "kubernetes-super-admin"
    document["users"][0]["name"] = document["contexts"][0]["context"]["user"] = admin
    document["current-context"] = document["contexts"][0]["name"] = f"{admin}@kubernetes"
    assert kubeconfig_of_secret(data(document), SERVER, "ml") == kubeconfig_of_secret(
        data(), SERVER, "ml"
    )


@pytest.mark.parametrize("name", ["ml", "123", "my vCluster", "kind@x:1/y", "it's", "2026-01-01"])
def test_a_context_may_have_any_name_that_yaml_writes_plainly_or_quotes(name):
    text = yaml.safe_dump(config(server=SERVER)).replace(
        "team-ml-ml", yaml.safe_dump(name).split("\n")[0]
    )
    assert yaml.safe_load(rebuild(text))["current-context"] == name
    assert kubeconfig_of_secret(data(text), SERVER, "ml") == kubeconfig_of_secret(
        data(), SERVER, "ml"
    )


@pytest.mark.parametrize("name", ["2020-13-45", "0x10", "1_000", "yes", "null", "12:30:45"])
def test_a_plain_context_is_the_text_that_is_there_whatever_else_yaml_reads_in_it(name):
    text = yaml.safe_dump(config(server=SERVER)).replace("team-ml-ml", name)
    assert yaml.safe_load(rebuild(text))["current-context"] == name


@pytest.mark.parametrize("name", ["'\x1b[2J'", "'\ufffe'", '"\x07"', "'a\x85b'"])
def test_a_context_with_characters_that_yaml_does_not_read_is_refused(name):
    text = yaml.safe_dump(config(server=SERVER)).replace("team-ml-ml", name)
    with pytest.raises(TenantKubeconfigError, match=FORM):
        rebuild(text)


def changed(certificate, old, new):
    """A certificate with other bytes in it, as PEM; nobody here asks who signed it."""
    der = certificate.public_bytes(Encoding.DER)
    assert der.count(old) == 1
    odd = base64.encodebytes(der.replace(old, new))
    return b"-----BEGIN CERTIFICATE-----\n" + odd + b"-----END CERTIFICATE-----\n"


def of_version(number):
    """A certificate with another number as its version: X.509 has three, counted from 0."""
    certificate = x509.load_pem_x509_certificate(keys().certificate)
    return changed(certificate, b"\xa0\x03\x02\x01\x02", bytes((160, 3, 2, 1, number)))


def until_year_0():
    """A certificate that ended in a year that Python has not, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    created = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(datetime(2060, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2061, 2, 3, tzinfo=UTC))
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return changed(created, b"20610203000000Z", b"00000203000000Z"), pem


def with_password(key):
    best = serialization.BestAvailableEncryption(b"p")
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, best)


OWN = keys()
EMPTY_KEY = b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"
PIECES = "has in its key config no certificates, or a key that is not the certificate's"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (replace(OWN, key=keys("other").key), PIECES),
        (replace(OWN, key=OWN.certificate), PIECES),
        (replace(OWN, certificate=OWN.key), PIECES),
        (replace(OWN, authority=b"/etc/hostname"), PIECES),
        (replace(OWN, authority=of_version(3)), PIECES),
        (replace(OWN, certificate=of_version(9)), PIECES),
        (replace(OWN, key=EMPTY_KEY), PIECES),
        (replace(OWN, key=with_password(rsa.generate_private_key(65537, 1024))), PIECES),
        (Keys(OWN.authority, *until_year_0()), PIECES),
        (replace(OWN, authority=OWN.authority * 99), FORM),
        (replace(OWN, key=OWN.key * 50), FORM),
        (replace(OWN, authority=b""), FORM),
    ],
)
def test_pieces_that_are_not_what_they_should_be_are_refused(given, says):
    assert str(refused(data(config(given)))) == says


@pytest.mark.parametrize("value", ["?", ["x"], None])
def test_what_is_no_text_is_refused(value):
    assert str(refused({"config": value})) == "holds no plain text at its key config"
    assert str(refused({"token": value})) == "has no key config"


def test_what_stands_around_a_certificate_is_left_out():
    around = replace(OWN, authority=b"x: y\n" + OWN.authority)
    assert kubeconfig_of_secret(data(config(around)), SERVER, "ml") == kubeconfig_of_secret(
        data(), SERVER, "ml"
    )


def test_nothing_of_the_pieces_is_in_what_python_shows_of_them():
    assert "PRIVATE KEY" not in repr(pieces(data()))


def test_the_message_names_team_and_key_and_has_the_commands_that_repair_it():
    why = refused(data(planted("users", "user", {"exec": USER["exec"]})))
    assert explain("ml", "team-ml", why) == (
        f"Secret vc-ml of namespace team-ml {FORM}. Somebody who can write in the namespace of team"
        " ml wrote it; nothing of it was used. Have vCluster write it again: kubectl -n team-ml"
        " delete secret vc-ml and kubectl -n team-ml rollout restart statefulset ml"
    )


def test_what_a_state_holds_is_built_anew_at_its_own_address():
    text = yaml.safe_dump(config(server=SERVER))
    assert yaml.safe_load(rebuild(text)) == yaml.safe_load(
        kubeconfig_of_secret(data(), SERVER, "team-ml-ml")
    )
    assert rebuild(rebuild(text)) == rebuild(text)


@pytest.mark.parametrize(
    "server", ["http://10.0.0.1", "file:///etc/hostname", "https://a@b", "x", "https://[::1"]
)
def test_what_a_state_holds_is_for_https(server):
    with pytest.raises(TenantKubeconfigError, match=FORM):
        rebuild(yaml.safe_dump(config(server=server)))
