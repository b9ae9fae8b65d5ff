"""The manifests of Kubernetes follow the schemas of Kubernetes, and their commands are commands of memory-fleet.

usage: manifests.py PROGRAM, with kubernetes-validate and pyyaml from PyPI
"""

import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import yaml

VERSIONS = ("1.29", "1.34")
manifests = Path(__file__).parents[1] / "deploy" / "kubernetes.yaml"
documents = list(yaml.safe_load_all(manifests.read_text()))
containers = []
for document in documents:
    for version in VERSIONS:
        kubernetes_validate.validate(document, version, strict=True)
    template = document.get("spec", {})
    template = template.get("jobTemplate", {}).get("spec", template).get("template", {})
    pod = template.get("spec", {})
    for container in pod.get("containers", []):
        containers.append(container)
        assert {mount["name"] for mount in container["volumeMounts"]} <= {volume["name"] for volume in pod["volumes"]}
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"], container["name"]
    labels = document.get("spec", {}).get("selector", {}).get("matchLabels")
    if labels and template:
        assert labels.items() <= template["metadata"]["labels"].items(), document["metadata"]["name"]
for container in containers:
    command, *options = container["args"]
    known = subprocess.run([sys.argv[1], command, "--help"], capture_output=True, text=True, check=True).stdout
    for option in options:
        if option.startswith("--"):
            name = option.split("=")[0]
            assert f"{name} " in known, f"{command} has no option {name}"
print(f"{len(documents)} manifests follow the schemas of Kubernetes {' and '.join(VERSIONS)}")
