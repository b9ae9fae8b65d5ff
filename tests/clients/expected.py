"""The input of each client in Python: the folder of the files, and their expected sums."""

import json
import sys
from pathlib import Path

folder = Path(sys.argv[1])
_all = json.loads((folder / "expected.json").read_text())
profiles, metrics = _all["profiles"], _all["metrics"]
failures = []


def equal(what, found, wanted):
    """Records a difference. `finish` prints all differences."""
    if found != wanted:
        failures.append(f"{what}: the client has {found}, the product {wanted}")


def refuses(form, names):
    """Checks that the product rejects exactly these inputs, with an error that names the format."""
    for name, profile in profiles.items():
        error = profile["refused"].get(form[0])
        equal(f"{name}.{form[0]} is refused", error is not None, name in names)
        if error and form[1] not in error:
            failures.append(f"{name}.{form[0]}: the error does not name {form[1]}: {error}")


def finish(client, count):
    for failure in failures:
        print(failure, file=sys.stderr)
    if failures:
        sys.exit(1)
    print(f"{client}: {count} files, all sums are equal to the product's")
