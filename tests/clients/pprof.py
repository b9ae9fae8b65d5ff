"""Compares go tool pprof: -raw, -top, -tags and -tagroot of each file. The second argument is the program pprof."""

import re
import subprocess
import sys
from collections import defaultdict

from expected import equal, finish, folder, profiles, refuses

SAMPLE = re.compile(r" *(-?\d+) +(-?\d+): [\d ]*\n")
KIND = re.compile(r" +kind:\[(\w+)\]")


def run(*options):
    done = subprocess.run(
        [sys.argv[2], *options], capture_output=True, encoding="utf-8", errors="replace", env={"HOME": str(folder)}
    )
    equal(f"{options}: exit status ({done.stderr.strip()})", done.returncode, 0)
    return done.stdout


def number(text):
    """An amount in bytes, as pprof prints it with -unit=bytes."""
    return int(text.removesuffix("B").removesuffix(".0"))


refuses(("pb.gz", "pprof"), set())
for name, profile in profiles.items():
    file = folder / profile["files"]["pb.gz"]
    kinds = profile["by kind"]
    raw = run("-raw", file)
    sums, last = defaultdict(lambda: [0, 0]), None
    for line in raw[: raw.index("\nLocations") + 1].splitlines(True):
        if sample := SAMPLE.fullmatch(line):
            last = [int(sample[1]), int(sample[2])]
            sums[""] = [a + b for a, b in zip(sums[""], last)]
        elif last and (kind := KIND.match(line)):
            sums[kind[1]] = [a + b for a, b in zip(sums[kind[1]], last)]
            sums[""] = [a - b for a, b in zip(sums[""], last)]
            last = None
    equal(f"{file.name}: -raw", {kind: sum for kind, sum in sums.items() if any(sum)}, kinds)
    if name == "hostile":
        # pprof demangles names that look mangled. Because of that, it once changed this name to `::extend`.
        name_of_rust = "<alloc::vec::Vec<T> as core::iter::Extend>::extend"
        equal("the name of a function of Rust is whole", name_of_rust in raw, True)
    if name in ("empty", "beyond", "below"):
        continue  # There is nothing to list, or the listing rounds.
    show = ["-unit=bytes", "-nodefraction=0", "-nodecount=100000"]
    total = profile["blocks and bytes"][1]
    top = run("-top", *show, file)
    equal(f"{file.name}: -top", number(re.search(r"of (\d+B?) total", top)[1]), total)
    if "" in kinds:
        continue
    tags = run("-tags", *show, file)
    tags = tags[tags.index("kind: Total") :].split("\n\n")[0]
    found = {kind: number(amount) for amount, kind in re.findall(r"^ +([\d.]+B?) \([^)]*\): (\w+)", tags, re.M)}
    equal(f"{file.name}: -tags", found, {kind: sums[1] for kind, sums in kinds.items()})
    roots = run("-top", "-cum", "-tagroot=kind", *show, file)
    found = {kind: number(amount) for amount, kind in re.findall(r" (\d+B?) +[\d.]+% +(once|twice|unreported)\b *$", roots, re.M)}
    equal(f"{file.name}: -tagroot=kind", found, {kind: sums[1] for kind, sums in kinds.items()})
finish("go tool pprof", len(profiles))
