"""The files of backups and of their key: private, and every mistake is told by its file."""

import pytest

from kai_fleet_cli.backups import files
from kai_fleet_cli.errors import UserError
from tests.unit.cli.backups.test_backup import clear_tar, taken


@pytest.fixture
def key(tmp_path):
    return tmp_path / "keys" / "backup.key"


def test_the_first_backup_makes_the_key_and_the_second_takes_it(tmp_path, key, capsys):
    backup = taken()
    for name in ("a.backup", "b.backup"):
        files.write(backup, tmp_path / name, key)
    assert capsys.readouterr().err.count("is a new key") == 1
    for file in (key, tmp_path / "a.backup"):
        assert file.stat().st_mode & 0o077 == 0
    assert files.read("ml", tmp_path / "b.backup", key) == backup


def test_a_file_that_others_could_read_is_private_after_it(tmp_path, key):
    file = tmp_path / "ml.backup"
    file.touch(mode=0o644)
    files.write(taken(), file, key)
    assert file.stat().st_mode & 0o077 == 0


def test_a_write_that_is_cut_off_leaves_the_file_before(tmp_path, key, monkeypatch):
    file = tmp_path / "ml.backup"
    files.write(taken(), file, key)
    before = file.read_bytes()

    def cut_off(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.fsync", cut_off)
    with pytest.raises(KeyboardInterrupt):
        files.write(taken(), file, key)
    assert file.read_bytes() == before
    assert {path.name for path in tmp_path.iterdir()} == {"ml.backup", "keys"}


def test_a_folder_has_a_file_of_each_team(tmp_path, key):
    files.write(taken(), tmp_path / "ml.backup", key)
    assert files.read("ml", tmp_path, key).record["team"] == "ml"
    with pytest.raises(UserError, match=r"research\.backup cannot be read"):
        files.read("research", tmp_path, key)


def test_a_backup_in_clear_needs_no_key(tmp_path, key):
    file = tmp_path / "from-restic.tar"
    file.write_bytes(clear_tar())
    assert files.read("ml", file, key).record["team"] == "ml"
    assert not key.exists()


def test_the_backup_of_another_team_is_refused(tmp_path, key):
    files.write(taken(), tmp_path / "ml.backup", key)
    with pytest.raises(UserError, match="is a backup of team ml, not of research"):
        files.read("research", tmp_path / "ml.backup", key)


@pytest.mark.parametrize("content", [None, "", "AGE-SECRET-KEY-1WRONG\n", "two words"])
def test_a_file_that_is_no_key_is_named(tmp_path, key, content):
    files.write(taken(), tmp_path / "ml.backup", key)
    other = tmp_path / "other.key"
    if content is not None:
        other.write_text(content)
    with pytest.raises(UserError, match=r"other\.key is no key of a backup"):
        files.read("ml", tmp_path / "ml.backup", other)


def test_a_folder_in_place_of_a_file_is_told(tmp_path, key):
    with pytest.raises(UserError, match="cannot be written: Is a directory"):
        files.write(taken(), tmp_path, key)
