"""The files of deploy/: valid by the published schemas, and true to the service."""

import fnmatch
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest
import yaml

from sightline.serve.limits import Limits

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
LIMITS = Limits()
GRACE = LIMITS.time_limit + LIMITS.upload_seconds + 5 + LIMITS.drain_seconds


def manifests():
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def named(kind):
    return next(each for each in manifests() if each["kind"] == kind)


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def test_the_compose_file_fits_its_schema():
    pytest.importorskip("check_jsonschema")
    import jsonschema

    folder = files("check_jsonschema") / "builtin_schemas" / "vendor"
    schema = json.loads((folder / "compose-spec.json").read_text())
    check = jsonschema.validators.validator_for(schema)(schema)
    check.validate(compose())
    wrong = compose()
    wrong["services"]["sightline"]["read_onyl"] = True
    with pytest.raises(jsonschema.ValidationError, match="read_onyl"):
        check.validate(wrong)


@pytest.mark.parametrize("version", ["1.30.0", "1.34.0"])
def test_the_manifests_fit_kubernetes_schemas(version):
    kubernetes_validate = pytest.importorskip("kubernetes_validate")
    for each in manifests():
        kubernetes_validate.validate(each, version, strict=True)
    wrong = named("Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(kubernetes_validate.ValidationError, match="imagee"):
        kubernetes_validate.validate(wrong, version, strict=True)


def test_the_manifests_name_each_other_and_what_the_service_has():
    deployment, service = named("Deployment"), named("Service")
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        spec = named(kind)["spec"]
        assert (spec.get("selector") or spec["podSelector"])["matchLabels"] == labels
    (port,) = container["ports"]
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    assert f"EXPOSE {port['containerPort']}" in dockerfile
    assert service["spec"]["ports"][0]["targetPort"] == port["name"]
    assert f"USER {pod['spec']['securityContext']['runAsUser']}\n" in dockerfile
    probes = {
        kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in ("readiness", "liveness")
    }
    assert probes == {"readiness": "/readyz", "liveness": "/healthz"}
    assert pod["spec"]["terminationGracePeriodSeconds"] >= GRACE + 5  # and preStop's sleep


def test_every_way_to_run_it_gives_requests_their_time_and_bounds_memory():
    service = compose()["services"]["sightline"]
    assert int(service["stop_grace_period"].removesuffix("s")) >= GRACE
    assert (service["read_only"], service["mem_limit"]) == (True, "4g")
    unit = (DEPLOY / "sightline.service").read_text()
    assert int(re.search(r"TimeoutStopSec=(\d+)", unit)[1]) >= GRACE
    most = int(re.search(r"client_max_body_size +(\d+)m", (DEPLOY / "nginx.conf").read_text())[1])
    assert most * 1e6 >= LIMITS.upload_bytes * 4 / 3


def test_the_image_is_built_from_a_pinned_base_and_what_it_needs():
    dockerfile = (DEPLOY / "Dockerfile").read_text()
    bases = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    assert len(bases) == 2
    for base in bases:
        assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", base)
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    kept = {line[1:] for line in lines if line.startswith("!")}
    copied = re.search(r"^COPY (.+) \./$", dockerfile, re.MULTILINE)[1].split()
    assert {*copied, "src"} <= kept
    assert "*" in lines
    for name in (".git", "docs", "tests", "runs", ".venv", "demo"):
        assert not any(fnmatch.fnmatch(name, pattern) for pattern in kept)
