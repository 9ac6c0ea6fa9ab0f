"""Small scripts that stand where Pulumi expects an executable of its own.

Each one runs this environment's Python. They are written anew when what they should say changes,
for example because the environment moved.
"""

import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[2]
# A stand-in is code of this checkout: it is kept in its environment, and goes with that.
STAND_INS: Final = Path(sys.prefix) / "kai-fleet"
_SCRIPTS: Final = Path(__file__).with_name("scripts")


def provider(name: str, module: str) -> Path:
    """A launcher of that name for a provider that is a Python module of this checkout."""
    named = {"python": sys.executable, "checkout": str(CHECKOUT), "module": module}
    return _written(STAND_INS / name, "provider.sh", **named)


def _written(path: Path, script: str, **named: str) -> Path:
    text = (_SCRIPTS / script).read_text(encoding="utf-8")
    for name, value in named.items():
        text = text.replace(f"@{name}@", shlex.quote(value))
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file() or path.read_text() != text:
        # Renamed into place, because the engine may be running the old one.
        handle, fresh = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        Path(fresh).chmod(0o755)
        Path(fresh).replace(path)
    return path
