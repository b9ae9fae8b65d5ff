"""A Prometheus server scrapes an example program. It must store every series, and constant values must be equal.

usage: prometheus.py PROMETHEUS PROGRAM, where PROGRAM is endpoint_axum of examples/programs
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from socket import socket

from prometheus_client.openmetrics.parser import text_string_to_metric_families

SECONDS = 60
NAMES = 500
DASHBOARD = Path(__file__).parents[2] / "docs/src/grafana-dashboard.json"
TYPES = "application/openmetrics-text; version=1.0.0"


def get(address, path, **headers):
    request = urllib.request.Request(f"http://{address}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        return answer.read().decode()


def ask(server, path):
    return json.loads(get(server, f"/api/v1/{path}"))["data"]


def wait(what, ready):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        try:
            if found := ready():
                return found
        except OSError:
            pass  # It does not listen yet.
        time.sleep(0.2)
    sys.exit(f"Prometheus: {what} takes more than {SECONDS} s")


def series(labels):
    return tuple(sorted((name, value) for name, value in labels.items() if name not in ("__name__", "instance", "job")))


def free_address():
    with socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{listener.getsockname()[1]}"


def check(server, program):
    [target] = wait(
        "the first scrape",
        lambda: [target for target in ask(server, "targets")["activeTargets"] if target["health"] != "unknown"],
    )
    assert target["health"] == "up" and not target["lastError"], target
    text = get(program, "/metrics", Accept=TYPES)
    own = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    [types] = ask(server, "metadata?metric=memory_report_bytes")["memory_report_bytes"]
    assert types["type"] == "gauge" and types["unit"] == "bytes" and types["help"], types

    def query(text):
        return ask(server, "query?query=" + urllib.parse.quote(text))["result"]

    for name in {sample.name for sample in own}:
        stored = {series(result["metric"]) for result in query(name)}
        wanted = {series(sample.labels) for sample in own if sample.name == name}
        assert stored == wanted, (name, stored ^ wanted)
    # The program no longer receives greetings, so this amount does not change between the two requests.
    [stored] = query('memory_report_bytes{path="explicit/greeted"}')
    [wanted] = [sample.value for sample in own if sample.labels.get("path") == "explicit/greeted"]
    assert int(stored["value"][1]) == wanted > NAMES * 24, (stored, wanted)
    # Growth needs two scrapes.
    wait("the second scrape", lambda: query("count_over_time(up[1m]) > 1"))
    panels = json.loads(DASHBOARD.read_text())["panels"]
    for expression in [target["expr"] for panel in panels for target in panel["targets"]]:
        expression = expression.replace("$job", ".*").replace("$instance", ".*")
        assert query(expression), f"the dashboard's query has no result: {expression}"
    return len(own)


with tempfile.TemporaryDirectory() as folder:
    started = []
    try:
        environment = os.environ | {"DMD": "--mode=live --quiet"}
        program = subprocess.Popen(
            [sys.argv[2], "127.0.0.1:0"], stdout=subprocess.PIPE, encoding="utf-8", env=environment
        )
        started.append(program)
        addresses = dict(program.stdout.readline().split() for _ in range(2))
        addresses = {what: address.removeprefix("http://").split("/")[0] for what, address in addresses.items()}
        for number in range(NAMES):
            get(addresses["service"], f"/greet/guest-{number}")
        config = Path(folder) / "prometheus.yml"
        targets = [{"targets": [addresses["admin"]]}]
        jobs = [{"job_name": "example", "scrape_interval": "1s", "static_configs": targets}]
        config.write_text(json.dumps({"scrape_configs": jobs}))  # JSON is YAML.
        server = free_address()
        options = [f"--config.file={config}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address={server}"]
        log = open(Path(folder) / "log", "w+")
        started.append(subprocess.Popen([sys.argv[1], *options, "--log.level=error"], stdout=log, stderr=log))
        count = check(server, addresses["admin"])
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()
print(f"a server of Prometheus: {count} series of a program, all equal")
