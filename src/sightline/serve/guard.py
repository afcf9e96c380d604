"""The outermost ASGI layer: request ids, the API key, origins, security headers, a log line and
metrics."""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sightline.errors import UserError
from sightline.serve.answers import RefusedResponse
from sightline.serve.limits import Refusal
from sightline.serve.logs import logger, request_id

if TYPE_CHECKING:
    from sightline.serve.metrics import Metrics

# The page loads nothing from other origins; the pictures, clips and sounds it shows are blobs.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; "
    "media-src 'self' blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"  # no text becomes markup or code
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(self), microphone=(self), geolocation=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
# What a page of another origin may send, and read besides the body, where its origin is allowed.
SENT = ["authorization", "content-type", "x-api-key", "x-request-id"]
READ = ["retry-after", "x-request-id"]
_ORIGIN = re.compile(r"\*|https?://([a-z0-9-]+(\.[a-z0-9-]+)*|\[[0-9a-f:]+\])(:\d{1,5})?")
_KEY = re.compile(r"[!-~](?:[ -~]*[!-~])?")
DISCONNECTED = 499  # logged as the status where the client left before its response


class Guard:
    """Wraps the application; every request and response passes through it."""

    def __init__(
        self,
        app: ASGIApp,
        metrics: Metrics,
        api_key: str | None = None,
        origins: Sequence[str] = (),
    ) -> None:
        self.app = app
        self.metrics = metrics
        self.inner: ASGIApp = self._checked
        if origins:  # around the key: a browser asks without it whether it may send it
            self.inner = _for_origins(self._checked, origins)
        if api_key is not None and not _KEY.fullmatch(api_key):
            raise UserError(
                "the API key has a character that a request's header cannot carry as it is; "
                "use ASCII letters, digits and signs, without spaces at its ends"
            )
        self.api_key = api_key
        self.draining = False  # set at shutdown: every response then closes its connection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method = scope["method"]
        if method == "HEAD":  # handled as GET; uvicorn leaves the body out
            scope = {**scope, "method": "GET"}
        headers = Headers(scope=scope)
        name = request_id(headers.get("x-request-id"))
        state = scope.setdefault("state", {})
        state["request_id"] = name
        began, status = time.monotonic(), 0

        async def send_guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                out = MutableHeaders(scope=message)
                for key, value in {**HEADERS, "x-request-id": name}.items():
                    out.setdefault(key, value)
                out.setdefault("cache-control", "no-store")
                if self.draining:
                    out["connection"] = "close"
            await send(message)

        try:
            if "content-length" in headers and "transfer-encoding" in headers:
                # a proxy may go by the other one, and take part of the body for another request
                both = "Content-Length and Transfer-Encoding in one request"
                refusal = Refusal(400, "bad_request", both, close=True)
                await _refuse(refusal, scope, receive, send_guarded)
            else:
                await self.inner(scope, receive, send_guarded)
        except ClientDisconnect:
            status = DISCONNECTED
            self.metrics.disconnects.inc()
        except Exception as error:
            self.failed(error, name)
        finally:
            self._record(scope, method, status or 500, time.monotonic() - began)

    async def _checked(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The application, for whom the key opens it."""
        if self._is_locked(scope["path"], Headers(scope=scope)):
            refusal = Refusal(401, "no_key", "this service needs a valid API key", close=True)
            await _refuse(refusal, scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def failed(self, error: Exception, name: str | None = None) -> None:
        """Count a bug and log its traceback; the response never contains it."""
        self.metrics.failures.inc()
        logger.error("failed", exc_info=error, extra={"fields": {"request_id": name}})

    def _is_locked(self, path: str, headers: Headers) -> bool:
        if self.api_key is None or not path.startswith("/v1/"):
            return False
        given = headers.get("x-api-key", "")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if not given and scheme.lower() == "bearer":
            given = token.strip()
        return not hmac.compare_digest(given.encode(), self.api_key.encode())

    def _record(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        state = scope["state"]
        route = getattr(scope.get("route"), "path", "other")
        self.metrics.requests.labels(route, str(status)).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        received = state.get("received", 0)
        self.metrics.received.inc(received)
        fields = {
            "request_id": state["request_id"],
            "method": method,
            "route": route,
            "status": status,
            "seconds": round(seconds, 4),
            "received": received,
            "client": (scope.get("client") or ("",))[0],
        }
        fields |= {key: state[key] for key in ("model", "refused") if key in state}
        logger.info("request", extra={"fields": fields})


async def _refuse(refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
    state = scope["state"]
    state["refused"] = refusal.code
    await RefusedResponse(refusal, state["request_id"])(scope, receive, send)


def _for_origins(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """The application, whose answers pages of these origins may read."""
    for origin in origins:
        if not _ORIGIN.fullmatch(origin):
            raise UserError(
                f"--allow-origin {origin!r}: an origin is https://HOST or https://HOST:PORT in "
                "lower case and without a path; * is every origin"
            )
    return CORSMiddleware(
        app,
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=SENT,
        expose_headers=READ,
    )
