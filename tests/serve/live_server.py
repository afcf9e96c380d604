"""A real server in a thread, a model that answers on command, and pictures to send."""

import io
import socket
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import httpx

from shape_pictures import draw
from sightline.runtime.describer import Options
from sightline.serve.app import Service
from sightline.serve.limits import Limits
from sightline.serve.models import Models
from sightline.serve.server import Server, bind
from sightline.tasks import spec_of

PATIENCE = 240  # seconds after which a machine is not busy, but something is wrong
QUICK = {"drain_seconds": 0}  # what tests have no time for
PATIENT = {"time_limit": PATIENCE, **QUICK}  # where it is not time that is tested


@contextmanager
def running(models, limits=None, api_key=None, origins=()):
    """The service on a free port; its `.url`, `.client`, `.service` and `.thread`."""
    listener = bind("127.0.0.1", 0)
    server = Server(Service(models, limits or Limits(**PATIENT), api_key, origins))
    server.thread = thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    server.port = listener.getsockname()[1]
    server.url = f"http://127.0.0.1:{server.port}"
    try:
        wait_for(lambda: server.started)
        with httpx.Client(base_url=server.url, timeout=PATIENCE) as server.client:
            yield server
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the server did not end"


def wait_for(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.005)


class HeldModel:
    """A captioner that reads nothing and answers only when it is released."""

    name, task, takes_files = "held", "caption", False
    route = spec_of(task).route()

    def __init__(self):
        self.go = threading.Event()
        self.batches = []  # the number of requests of each call
        self.model = SimpleNamespace(defaults=Options(), check=lambda settings: None)

    def read(self, picture, reading, decoders):
        return picture

    def check(self, item, settings):
        pass

    def run(self, items, settings, streamed):
        self.batches.append(len(items))
        while not self.go.wait(0.01):
            yield []
        answer = {"text": f"{len(items)} at once", "seconds": 0.0}
        yield [(place, answer) for place in range(len(items))]


def held():
    model = HeldModel()
    return model, Models({"held": model})


def picture_bytes(colour="red", shape="square", seed=1, kind="PNG"):
    file = io.BytesIO()
    draw(colour, shape, seed).save(file, kind)
    return file.getvalue()


def post(client, picture=b"x", **fields):
    return client.post("/v1/describe", files={"file": ("p.png", picture)}, data=fields)


def request_bytes(stream="false"):
    """A whole request to describe something."""
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nx\r\n'
        b'--b\r\nContent-Disposition: form-data; name="stream"\r\n\r\n'
        + stream.encode()
        + b"\r\n--b--\r\n"
    )
    head = (
        "POST /v1/describe HTTP/1.1\r\nHost: x\r\n"
        f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def sent(server, count, stream="false"):
    """Connections on which a request was made, once they all hold a place."""
    address = ("127.0.0.1", server.port)
    clients = [socket.create_connection(address, timeout=PATIENCE) for _ in range(count)]
    for client in clients:
        client.sendall(request_bytes(stream))
    wait_for(lambda: server.service.taken == count)
    return clients


def code(response):
    """Of an error; every error has the same form."""
    content = response.json()
    assert set(content) == {"error", "request_id"}
    return content["error"]["code"]


def in_threads(count, function):
    """function(0) … function(count - 1) at the same time; their results in order."""
    results = [None] * count
    failures = []

    def run(number):
        try:
            results[number] = function(number)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "waited in vain"
    if failures:
        raise failures[0]
    return results
