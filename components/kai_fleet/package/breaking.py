"""`python -m kai_fleet.package.breaking OLD [NEW]`: what a change of the schema breaks.

OLD is the schema of the last release, `-` for stdin; NEW is the one of this version if left out.
Exit 1, with a line for each program that would not compile or would not run any more.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from kai_fleet.package import SCHEMA_FILE, Json, in_words


def broken(old: Json, new: Json) -> list[str]:
    """What programs written for `old` cannot do any more, one sentence each."""
    lines: list[str] = []
    for token, before in old["resources"].items():
        after, owner = new["resources"].get(token), token.rpartition(":")[2]
        if after is None:
            lines.append(f"component {owner} is gone")
            continue
        for part, required in (("inputProperties", "requiredInputs"), ("properties", "required")):
            lines += _properties(owner, before, after, part, required, inputs="Inputs" in required)
    for token, before in old["types"].items():
        after, owner = new["types"].get(token), f"type {token.rpartition(':')[2]}"
        if after is None:
            lines.append(f"{owner} is gone")
        elif "enum" in before:
            left = {it["value"] for it in after.get("enum", ())}
            gone = [it["value"] for it in before["enum"] if it["value"] not in left]
            lines += [f"{owner}: the value {value} is gone" for value in gone]
        else:
            lines += _properties(owner, before, after, "properties", "required", inputs=True)
    return lines


def _properties(
    owner: str, before: Json, after: Json, part: str, required: str, *, inputs: bool
) -> Iterator[str]:
    word = "input" if inputs else "output"
    news = after.get(part, {})
    for name, was in before.get(part, {}).items():
        if name not in news:
            yield f"{owner}: {word} {name} is gone"
        elif (old := in_words(was, "a ")) != (now := in_words(news[name], "a ")):
            yield f"{owner}: {word} {name} was {old} and is {now}"
        elif was.get("secret") and not news[name].get("secret"):
            yield f"{owner}: {word} {name} was a secret and is none"
    had, has = set(before.get(required, ())), set(after.get(required, ()))
    if inputs:
        yield from (f"{owner}: input {name} is needed now" for name in sorted(has - had))
    else:
        gone = sorted((had - has) & set(news))
        yield from (f"{owner}: output {name} is not always there any more" for name in gone)


def main() -> None:
    """Compare the files of the command line."""
    if len(sys.argv) not in (2, 3):
        raise SystemExit("write: python -m kai_fleet.package.breaking OLD [NEW]; - is stdin")
    old = sys.stdin.read() if sys.argv[1] == "-" else Path(sys.argv[1]).read_text(encoding="utf-8")
    new = Path(sys.argv[2]) if len(sys.argv) == 3 else SCHEMA_FILE
    lines = broken(json.loads(old), json.loads(new.read_text(encoding="utf-8")))
    for line in lines:
        print(line)
    raise SystemExit(1 if lines else 0)


if __name__ == "__main__":
    main()
