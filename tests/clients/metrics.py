"""Compares the bytes of each kind, as the Python client parses them. promtool (second argument) checks the files."""

import subprocess
import sys
from collections import defaultdict

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as prometheus

from expected import equal, finish, folder, metrics


def fails(what, text):
    try:
        list(open_metrics(text))
    except ValueError:
        return
    equal(f"the parser accepts {what}", True, False)


count = 0
for name, metric in metrics.items():
    for form, parse in [("om", open_metrics), ("prom", prometheus)]:
        file = metric["files"][form]
        text = (folder / file).read_text(encoding="utf-8")
        sums, series = defaultdict(int), 0
        for family in parse(text):
            for sample in family.samples:
                if sample.name == "memory_report_bytes":
                    sums[sample.labels["kind"]] += int(sample.value)
                    series += 1
        equal(file, dict(sums), metric["by kind"])
        equal(f"{file}: at most 500 series", series <= 500, True)
        count += 1
        if form == "prom" and len(sys.argv) > 2:
            done = subprocess.run([sys.argv[2], "check", "metrics"], input=text, capture_output=True, encoding="utf-8")
            equal(f"{file}: promtool ({done.stdout}{done.stderr})", done.returncode, 0)
text = (folder / metrics["one"]["files"]["om"]).read_text()
fails("a file without an end", text.removesuffix("# EOF\n"))
fails("a blank line", text.replace("\n", "\n\n", 1))
finish("the Python client of Prometheus" + (" and promtool" if len(sys.argv) > 2 else ""), count)
