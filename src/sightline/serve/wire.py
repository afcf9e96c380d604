"""What a decoding process hands back: JSON, then the arrays that it names.

The process has read bytes from a stranger, so nothing that comes from it is unpickled.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from multiprocessing import BufferTooShort
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline import errors
from sightline.types import Inputs, Layout, Stream

MOST_TEXT = 16_000_000  # bytes of JSON


class MalformedError(Exception):
    """What came is no result."""


def send(pipe: Connection, parts: Sequence[Inputs]) -> None:
    """What a reader made of one file."""
    arrays: list[NDArray[Any]] = []
    content = [
        {
            "streams": {
                name: [_noted(stream.values, arrays), _noted(stream.mask, arrays)]
                for name, stream in part.streams.items()
            },
            "layouts": [None if layout is None else asdict(layout) for layout in part.layouts],
        }
        for part in parts
    ]
    pipe.send_bytes(json.dumps({"parts": content}).encode())
    for array in arrays:
        pipe.send_bytes(_bytes_of(array))


def send_error(pipe: Connection, error: Exception) -> None:
    content = {"error": type(error).__name__, "message": str(error)[:4000]}
    pipe.send_bytes(json.dumps(content).encode())


def receive(pipe: Connection, seconds: float, most: int) -> list[Inputs]:
    """What was sent, or the error raised; a TimeoutError if nothing comes in so many seconds, a
    MalformedError for what `send` does not write, such as arrays of more than `most` bytes."""
    if not pipe.poll(seconds):
        raise TimeoutError
    try:
        content = json.loads(pipe.recv_bytes(MOST_TEXT))
        if "parts" in content:
            return [_part(part, pipe, seconds, most) for part in content["parts"]]
        error = _error(content["error"], str(content["message"]))
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as wrong:
        raise MalformedError(str(wrong)) from None
    except BufferTooShort:
        raise MalformedError("an array that is too long") from None
    raise error


def _error(name: str, message: str) -> Exception:
    known = getattr(errors, name, None)
    if isinstance(known, type) and issubclass(known, errors.UserError):
        return known(message)
    return MemoryError() if name == "MemoryError" else RuntimeError(f"{name}: {message}")


def _part(content: Any, pipe: Connection, seconds: float, most: int) -> Inputs:
    streams = {}
    for name, (values, mask) in content["streams"].items():
        streams[name] = Stream(
            _array(values, pipe, seconds, most),
            None if mask is None else _array(mask, pipe, seconds, most),
        )
    layouts = (None if each is None else _layout(each) for each in content["layouts"])
    return Inputs(1, streams, tuple(layouts))


def _layout(content: dict[str, Any]) -> Layout:
    return Layout(**{name: _as_tuple(value) for name, value in content.items()})


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value


def _noted(array: NDArray[Any] | None, arrays: list[NDArray[Any]]) -> tuple[Any, ...] | None:
    if array is None:
        return None
    arrays.append(np.ascontiguousarray(array))
    return array.dtype.str, array.shape


def _array(noted: Any, pipe: Connection, seconds: float, most: int) -> NDArray[Any]:
    kind, shape = np.dtype(str(noted[0])), [int(side) for side in noted[1]]
    size = kind.itemsize * math.prod(shape)
    if kind.kind not in "biuf" or min(shape, default=1) < 0 or size > most:
        raise MalformedError(f"an array of {kind} and {shape}")
    array = np.empty(shape, kind)
    if not pipe.poll(seconds):
        raise TimeoutError
    if pipe.recv_bytes_into(_bytes_of(array)) != size:
        raise MalformedError("an array that is too short")
    return array


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
