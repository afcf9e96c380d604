"""The description in /openapi.json is true, and nothing that it allows or forbids breaks the
service (schemathesis, where it is installed)."""

import json

import pytest
from live_server import picture_bytes, post


def test_the_description_has_both_bodies_the_errors_and_examples(server):
    schema = server.client.get("/openapi.json").json()
    assert set(schema["paths"]) >= {"/v1/describe", "/v1/translate", "/v1/models", "/v1/samples"}
    describe = schema["paths"]["/v1/describe"]["post"]
    bodies = describe["requestBody"]["content"]
    assert set(bodies) == {*("multipart/form-data", "application/json", "application/octet-stream")}
    assert set(bodies["multipart/form-data"]["schema"]["properties"]) == {
        *("file", "model", "beam", "n_best", "groups", "repeats", "prefix", "focus", "stream")
    }
    assert set(describe["responses"]) == {
        *("200", "400", "401", "404", "408", "413", "415", "422", "503")
    }
    example = describe["responses"]["200"]["content"]["application/json"]["example"]
    assert set(example) == set(post(server.client, picture_bytes()).json())
    json.dumps(schema)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.filterwarnings("ignore")
def test_schemathesis_finds_no_server_error(server):
    schemathesis = pytest.importorskip("schemathesis")
    from hypothesis import HealthCheck, Phase, given, settings
    from schemathesis.specs.openapi import checks

    schema = schemathesis.openapi.from_url(server.url + "/openapi.json")
    for operation in (result.ok() for result in schema.get_all_operations()):
        modes = list(schemathesis.GenerationMode)
        if operation.method.lower() == "get":  # it takes nothing that could be wrong
            modes = [schemathesis.GenerationMode.POSITIVE]
        for mode in modes:

            @given(case=operation.as_strategy(generation_mode=mode))
            @settings(
                max_examples=150,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=[Phase.explicit, Phase.generate],
                derandomize=True,
            )
            def run(case):
                response = case.call(base_url=server.url)
                assert response.status_code < 500 or response.status_code == 503
                case.validate_response(
                    response,
                    checks=[
                        schemathesis.checks.not_a_server_error,
                        checks.response_schema_conformance,
                        checks.content_type_conformance,
                        checks.status_code_conformance,
                    ],
                )

            run()
    assert "\nsightline_failures_total 0.0\n" in server.client.get("/metrics").text
