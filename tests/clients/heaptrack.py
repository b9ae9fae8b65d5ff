"""Compares heaptrack_print: calls and leaked bytes of each file, exact to the byte."""

import re
import subprocess

from expected import equal, finish, folder, profiles, refuses

UNITS = {"B": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4, "P": 1000**5}
refuses(("heaptrack", "heaptrack"), {"below"})
count = 0
for name, profile in profiles.items():
    file = profile["files"].get("heaptrack")
    if not file:
        continue
    count += 1
    blocks, size = profile["blocks and bytes"]
    # The client rounds the numbers that it prints, but not the numbers that it writes for flame graphs.
    flames = folder / f"{name}.flames"
    command = ["heaptrack_print", "-f", folder / file, "-p0", "-a0", "-T0", "-l0"]
    for cost, wanted in [("leaked", size), ("allocations", blocks), ("peak", size)]:
        options = ["-F", flames, "--flamegraph-cost-type", cost]
        done = subprocess.run(command + options, capture_output=True, encoding="utf-8", errors="replace")
        equal(f"{file}: exit status", done.returncode, 0)
        with open(flames, encoding="utf-8", errors="replace") as lines:
            equal(f"{file}: {cost}", sum(int(line.rsplit(" ", 1)[1]) for line in lines), wanted)
    calls = re.search(r"^calls to allocation functions: (\d+)", done.stdout, re.M)
    equal(f"{file}: calls", calls and int(calls[1]), blocks)
finish("heaptrack_print", count)
