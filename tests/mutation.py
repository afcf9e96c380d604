"""Sound files with something wrong in them."""

import numpy as np


def mutated(rng, content):
    """A file with something wrong in it: bytes changed, cut, doubled, swapped or added."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        kind, at = int(rng.integers(6)), int(rng.integers(max(1, len(data))))
        size = int(rng.integers(1, 40))
        if kind == 0:
            data[at : at + size] = rng.integers(0, 256, size, dtype=np.uint8).tobytes()
        elif kind == 1:
            del data[at:]
        elif kind == 2:
            del data[at : at + size]
        elif kind == 3:
            data[at:at] = data[at : at + size]
        elif kind == 4:
            data[at : at + 1] = bytes([data[at] ^ (1 << int(rng.integers(8)))]) if data else b""
        else:
            data[at : at + 4] = rng.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff"])
    return bytes(data)
