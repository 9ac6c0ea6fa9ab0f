"""Secrets of a stack's exported state, opened."""

import json

from kai_fleet_cli.recovery.state import is_secret, opened

# As Pulumi's protocol has it; nothing of the product is used to write it here.
MARK = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


def test_secrets_are_opened_at_any_depth_and_what_is_encrypted_is_none():
    inner = MARK | {"plaintext": '"hidden"'}
    outer = MARK | {"plaintext": json.dumps({"deep": [inner]})}
    state = {"a": outer, "b": [MARK | {"ciphertext": "v1:x"}, 1], "c": "plain"}
    assert opened(state) == {"a": {"deep": ["hidden"]}, "b": [None, 1], "c": "plain"}


def test_another_mark_is_no_secret():
    assert is_secret(MARK)
    assert not is_secret({"4dabf18193072939515e22adb298388d": "d0e6a833031e9bbcd3f4e8bde6ca49a4"})
    assert not is_secret("4dabf18193072939515e22adb298388d")
