"""Small scripts that stand where Pulumi expects an executable of its own.

Each one runs this environment's Python. They are written anew when what they should say changes,
for example because the environment moved.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[2]
# A stand-in is code of this checkout: it is kept in its environment, and goes with that.
STAND_INS: Final = Path(sys.prefix) / "kai-fleet"

# The engine passes its address, `.`, and the pack's runtime options as `-NAME=VALUE`. Python's
# argument parser would read -virtualenv as -v, so options are taken out here.
_POLICY_PACK = """\
#!/bin/sh
# Runs a policy pack written in Python: its own environment, else the one of kai-fleet.
python={python}
for argument do
  shift
  case $argument in
    -virtualenv=*) [ ! -x "${{argument#*=}}/bin/python" ] || python=${{argument#*=}}/bin/python ;;
    -*=*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "$python" -u -m pulumi.policy "$@"
"""

# The language host that can be built is older than the engine and stops at an option that it does
# not know; the environment to use is named by -virtualenv in any case.
_LANGUAGE_HOST = """\
#!/bin/sh
for argument do
  shift
  case $argument in
    -toolchain=*) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {host} "$@"
"""

_PROVIDER = """\
#!/bin/sh
# kai-fleet's stand-in for a Pulumi provider plugin; not Pulumi's own.
PYTHONPATH={checkout}${{PYTHONPATH:+:$PYTHONPATH}} exec {python} -m {module} "$@"
"""


def policy_pack(folder: Path, name: str) -> Path:
    """The launcher through which the engine runs a policy pack, as `folder/name`."""
    return _write(folder / name, _POLICY_PACK.format(python=_python()))


def language_host(folder: Path, name: str, host: Path) -> Path:
    """A launcher `folder/name` for a language host that was built from an older release."""
    return _write(folder / name, _LANGUAGE_HOST.format(host=shlex.quote(str(host))))


def provider(name: str, module: str) -> Path:
    """A launcher of that name for a provider that is a Python module of this checkout."""
    checkout = shlex.quote(str(CHECKOUT))
    text = _PROVIDER.format(python=_python(), checkout=checkout, module=module)
    return _write(STAND_INS / name, text)


def _python() -> str:
    return shlex.quote(sys.executable)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        # Renamed into place, because the engine may be running the old one.
        handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(fresh).chmod(0o755)
        Path(fresh).replace(path)
    return path
