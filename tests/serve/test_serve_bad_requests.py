"""Pictures, fields and bodies that cannot be used are refused with the reason."""

import base64
import io
import struct
import zlib

import pytest
from live_server import code, picture_bytes, post
from PIL import Image


def bomb():
    """A PNG that says it is 60,000 by 60,000: eleven gigabytes of pixels in a few kilobytes."""

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(10_000_000), 9)
    start = b"\x89PNG\r\n\x1a\n"
    return start + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def tiff_of(size):
    file = io.BytesIO()
    Image.new("1", size).save(file, "TIFF", compression="group4")
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "status", "expected"),
    [
        (b"", 400, "bad_picture"),
        (b"\xff\xd8\xff\xe0 cut short", 400, "bad_picture"),
        (
            b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
            415,
            "unsupported_picture",
        ),
        (b"<!DOCTYPE html><script>alert(1)</script>", 415, "unsupported_picture"),
        (b"%PDF-1.7", 415, "unsupported_picture"),
        (b"#!/bin/sh\nrm -rf /", 415, "unsupported_picture"),
        (b"GIF89a", 400, "bad_picture"),
        (bomb(), 413, "too_many_pixels"),
        (tiff_of((20_000, 20_000)), 413, "too_many_pixels"),
    ],
)
def test_what_is_no_picture_is_refused_by_its_content(server, content, status, expected):
    response = server.client.post(
        "/v1/describe", files={"file": ("photo.jpg", content, "image/jpeg")}
    )
    assert (response.status_code, code(response)) == (status, expected)
    encoded = base64.b64encode(content).decode()
    response = server.client.post("/v1/describe", json={"image": encoded})
    assert (response.status_code, code(response)) == (status, expected)


@pytest.mark.parametrize(
    ("fields", "status", "expected"),
    [
        ({"model": "../../etc/passwd"}, 404, "unknown_model"),
        ({"model": "toy"}, 404, "unknown_model"),
        ({"model": "shapes\x00"}, 404, "unknown_model"),
        ({"beam": "0"}, 422, "bad_field"),
        ({"beam": "21"}, 422, "bad_field"),
        ({"beam": "1e9"}, 422, "bad_field"),
        ({"beam": "2", "n_best": "3"}, 422, "bad_field"),
        ({"focus": "0,0,1"}, 422, "bad_field"),
        ({"focus": "nan,0,1,1"}, 422, "bad_field"),
        ({"focus": "0.2,0.2,0,0.5"}, 422, "bad_field"),
        ({"prefix": "a zyzzyva"}, 422, "cannot_do"),
        ({"prefix": "a" * 201}, 422, "bad_field"),
        ({"prefix": "x" * 9000}, 400, "bad_form"),
        ({"stream": "perhaps"}, 422, "bad_field"),
        ({"colour": "red"}, 422, "bad_field"),
    ],
)
def test_fields_that_cannot_be_used_are_named(server, fields, status, expected):
    response = post(server.client, picture_bytes(), **fields)
    assert (response.status_code, code(response)) == (status, expected)
    assert response.json()["error"]["message"]


def test_file_names_are_of_no_consequence(server):
    for name in ("../../../etc/passwd", "a\x00b.png", "x" * 3000, "<script>", "CON", "-rf"):
        files = {"file": (name, picture_bytes())}
        assert server.client.post("/v1/describe", files=files).status_code == 200


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[" * 50_000, "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"null", "application/json", 422),
        (b"{}", "application/json", 422),
        (b'{"image": 5}', "application/json", 422),
        (b'{"image": "*"}', "application/json", 422),
        (b'{"image": "", "focus": [NaN, 0, 1, 1]}', "application/json", 422),
        (b"x", "text/plain", 415),
        (b"x", "", 415),
        (b"x", "multipart/form-data", 400),
        (b"x", "multipart/form-data; boundary=b", 400),
        (b"--b\r\n\r\n", "multipart/form-data; boundary=b", 400),
        (b"--b--\r\n", "multipart/form-data; boundary=b", 422),
        (b"", "multipart/form-data; boundary=" + "b" * 300, 400),
    ],
)
def test_bodies_that_cannot_be_read_are_refused(server, body, kind, status):
    response = server.client.post("/v1/describe", content=body, headers={"Content-Type": kind})
    assert response.status_code == status, response.text
    code(response)


def test_wrong_methods_and_places_are_refused_in_the_same_form(server):
    assert code(server.client.get("/v1/describe")) == "wrong_method"
    assert code(server.client.post("/v1/nothing", content=b"x")) == "not_found"
    assert code(server.client.post("/v1/translate", json={"text": "a" * 2001})) == "bad_field"
    assert code(server.client.post("/v1/translate", content=bytes(70_000))) == "too_large"
