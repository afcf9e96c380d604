"""Reading pictures of every kind, refusing everything else, and preparing them for a network."""

import io
import struct
import subprocess
import sys
import time
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sightline.errors import DataError
from sightline.media.image import read_image
from sightline.media.preprocess import ImageSpec, preprocess, read_picture, visible_box
from sightline.types import Inputs

LITE = ImageSpec(260, "squeeze", 1.0, (127.0,) * 3, (128.0,) * 3, "bicubic")
TORCHVISION = ImageSpec(224, "crop", 1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def photo(height: int = 48, width: int = 64, seed: int = 0) -> np.ndarray:
    """A smooth coloured picture, so that lossy formats keep it."""
    rng = np.random.default_rng(seed)
    small = rng.integers(30, 225, (4, 4, 3), dtype=np.uint8)
    return np.array(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


def encoded(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM", "WEBP"])
def test_lossless_formats_give_the_pixels_back(kind: str) -> None:
    options = {"lossless": True, "exact": True} if kind == "WEBP" else {}
    pixels = photo()
    np.testing.assert_array_equal(
        read_image(encoded(Image.fromarray(pixels), kind, **options)), pixels
    )


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "AVIF", "GIF"])
def test_lossy_formats_come_close(kind: str) -> None:
    pixels = photo()
    got = read_image(encoded(Image.fromarray(pixels), kind))
    assert got.shape == pixels.shape
    assert np.abs(got.astype(int) - pixels).mean() < 8


def test_path_bytes_and_stream_agree(tmp_path: Path) -> None:
    data = encoded(Image.fromarray(photo()), "PNG")
    path = tmp_path / "a.png"
    path.write_bytes(data)
    with open(path, "rb") as stream:
        results = [read_image(path), read_image(str(path)), read_image(data), read_image(stream)]
    for result in results:
        np.testing.assert_array_equal(result, photo())


def test_exif_orientations_come_out_upright() -> None:
    upright = photo()
    # How a camera stores an upright picture under each orientation (the EXIF standard's table).
    stored = {
        1: upright,
        2: upright[:, ::-1],
        3: upright[::-1, ::-1],
        4: upright[::-1],
        5: upright.transpose(1, 0, 2),
        6: upright.transpose(1, 0, 2)[::-1],
        7: upright.transpose(1, 0, 2)[::-1, ::-1],
        8: upright.transpose(1, 0, 2)[:, ::-1],
    }
    for orientation, pixels in stored.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        data = encoded(Image.fromarray(np.ascontiguousarray(pixels)), "PNG", exif=exif)
        np.testing.assert_array_equal(read_image(data), upright, err_msg=str(orientation))


def test_unreadable_exif_does_not_refuse_the_picture() -> None:
    data = encoded(Image.fromarray(photo()), "JPEG", exif=b"Exif\x00\x00MM\x00*\xff\xff\xff\xff")
    assert read_image(data).shape == (48, 64, 3)


def test_grey_becomes_three_equal_channels() -> None:
    grey = photo()[..., 0]
    got = read_image(encoded(Image.fromarray(grey), "PNG"))
    np.testing.assert_array_equal(got, np.repeat(grey[..., None], 3, axis=2))


def test_one_bit_and_palette() -> None:
    bits = np.indices((8, 8)).sum(axis=0) % 2 == 0
    got = read_image(encoded(Image.fromarray(bits), "PNG"))
    np.testing.assert_array_equal(got[..., 0], np.where(bits, 255, 0))
    palette = Image.fromarray(photo()).quantize(16)
    got = read_image(encoded(palette, "PNG"))
    np.testing.assert_array_equal(got, np.array(palette.convert("RGB")))


def test_transparency_is_laid_on_white() -> None:
    rgba = np.dstack([photo(), np.full((48, 64), 0, np.uint8)])
    rgba[:, 32:, 3] = 255
    rgba[:, 16:32, 3] = 51  # a fifth
    got = read_image(encoded(Image.fromarray(rgba), "PNG"))
    assert (got[:, :16] == 255).all()
    np.testing.assert_array_equal(got[:, 32:], photo()[:, 32:])
    mixed = photo()[:, 16:32] * 0.2 + 255 * 0.8
    assert np.abs(got[:, 16:32] - mixed).max() <= 1


def test_transparent_palette_and_grey_alpha_are_laid_on_white() -> None:
    palette = Image.new("P", (4, 4), 0)
    palette.putpalette([0, 0, 0, 200, 10, 10])
    palette.putpixel((1, 1), 1)
    got = read_image(encoded(palette, "PNG", transparency=0))
    assert got[0, 0].tolist() == [255, 255, 255]
    assert got[1, 1].tolist() == [200, 10, 10]
    got = read_image(encoded(Image.new("LA", (4, 4), (0, 0)), "PNG"))
    assert (got == 255).all()


def test_cmyk_jpeg_becomes_rgb() -> None:
    cmyk = Image.new("CMYK", (16, 16), (0, 255, 255, 0))  # red ink
    red = read_image(encoded(cmyk, "JPEG", quality=95))[8, 8].astype(int)
    assert red[0] > 240
    assert red[1:].max() < 15


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_sixteen_bits_are_scaled_not_clipped(kind: str) -> None:
    deep = np.linspace(0, 65535, 64 * 48).astype(np.uint16).reshape(48, 64)
    got = read_image(encoded(Image.fromarray(deep), kind))
    assert np.abs(got[..., 0].astype(float) - deep / 257).max() <= 0.51


def test_float_tiff_is_scaled_and_nan_is_refused() -> None:
    ramp = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    got = read_image(encoded(Image.fromarray(ramp), "TIFF"))
    assert np.abs(got[..., 0] - ramp * 255).max() <= 0.51
    ramp[0, 0] = np.nan
    with pytest.raises(DataError, match="not numbers"):
        read_image(encoded(Image.fromarray(ramp), "TIFF"))


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_animation_gives_its_first_frame(kind: str) -> None:
    frames = [Image.new("RGB", (16, 16), colour) for colour in ("red", "blue", "green")]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    assert read_image(data)[8, 8].tolist() == [255, 0, 0]


def png_claiming(width: int, height: int) -> bytes:
    def chunk(kind: bytes, body: bytes) -> bytes:
        return (
            struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    idat = chunk(b"IDAT", zlib.compress(b"\0" * 100))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + idat + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [11_000, 20_000, 60_000])
def test_decompression_bomb_is_refused_before_decoding(side: int) -> None:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"bomb\.png: too large"):
            read_image(png_claiming(side, side), name="bomb.png")
    assert time.perf_counter() - start < 0.5


def test_pixel_limit_is_the_callers_to_set() -> None:
    data = encoded(Image.fromarray(photo(100, 100)), "PNG")
    assert read_image(data, max_pixels=10_000).shape == (100, 100, 3)
    with pytest.raises(DataError, match="100 x 100 pixels, and the limit is 9,999"):
        read_image(data, max_pixels=9_999)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "AVIF", "TIFF", "PPM"])
def test_truncated_files_are_refused(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)
    data = encoded(Image.fromarray(noise), kind)
    for share in (0.1, 0.5, 0.9):
        path = tmp_path / "cut.jpg"
        path.write_bytes(data[: int(len(data) * share)])
        with pytest.raises(DataError, match=r"cut\.jpg: (damaged|not a picture)"):
            read_image(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"<!DOCTYPE html><html><body>404</body></html>", "HTML page"),
        (b'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg"/>', "SVG"),
        (b"%PDF-1.7\n", "PDF"),
        (b"PK\x03\x04rest", "ZIP"),
        (b"hello, this is a letter\n", "text file"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "HEI[CF]"),
        (b"\x00\x00\x00\x18ftypisom\x00\x00\x00\x00isommp42", "video"),
        (b"RIFF\x00\x00\x00\x00WAVEfmt ", "audio"),
        (bytes(range(7)) * 30, "none of JPEG"),
    ],
)
def test_other_files_are_named_for_what_they_are(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "picture.jpg"
    path.write_bytes(content)
    with pytest.raises(DataError, match=reason) as caught:
        read_image(path)
    assert str(path) in str(caught.value)


def test_a_picture_with_another_ending_is_read_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "really_a_png.jpg"
    path.write_bytes(encoded(Image.fromarray(photo()), "PNG"))
    np.testing.assert_array_equal(read_image(path), photo())


def test_missing_file_and_folder_are_clear(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_image(tmp_path / "absent.jpg")
    with pytest.raises(DataError, match="folder"):
        read_image(tmp_path)


def odd_files(count: int) -> list[bytes]:
    """Damaged pictures: bytes changed, cut, doubled, spliced, or another kind's first bytes."""
    rng = np.random.default_rng(7)
    pictures = [
        encoded(Image.fromarray(photo(40, 40, seed)), kind)
        for seed, kind in enumerate(["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "AVIF"])
    ]
    pictures.append(encoded(Image.fromarray(photo(40, 40)).quantize(8), "PNG", transparency=0))
    exif = Image.Exif()
    exif[0x0112] = 6
    pictures.append(encoded(Image.fromarray(photo(40, 40)), "JPEG", exif=exif))
    files = []
    for number in range(count):
        data = bytearray(pictures[number % len(pictures)])
        signature = 0 if number % 3 == 0 else 24  # two in three keep it, so that decoders are met
        for _ in range(int(rng.integers(1, 12))):  # more often near the header
            place = signature + int((len(data) - signature) * rng.random() ** 3)
            data[place] = int(rng.integers(256))
        match number // len(pictures) % 5:
            case 1:
                del data[int(rng.integers(1, len(data))) :]
            case 2:
                start = int(rng.integers(len(data)))
                data[start:start] = data[: int(rng.integers(1, 200))]
            case 3:
                data[:16] = pictures[int(rng.integers(len(pictures)))][:16]
            case 4 if number % 2:
                data = bytearray(rng.integers(0, 256, 300, dtype=np.uint8).tobytes())
        files.append(bytes(data))
    return files


def test_a_thousand_odd_files_have_a_thousand_clear_outcomes(
    capfd: pytest.CaptureFixture[str],
) -> None:
    read = refused = 0
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a warning that leaks would be another exception
        for number, data in enumerate(odd_files(1000)):
            try:
                image = read_image(data, name=f"odd{number}")
            except DataError as error:
                assert str(error).startswith(f"odd{number}: ")  # noqa: PT017
                refused += 1
            else:
                assert image.dtype == np.uint8
                assert image.ndim == 3
                preprocess(image, LITE)
                read += 1
    assert read + refused == 1000
    assert read > 100
    assert refused > 400
    assert time.perf_counter() - start < 30
    assert capfd.readouterr() == ("", "")


def test_reading_restores_the_callers_warning_filters() -> None:
    before = list(warnings.filters)
    read_image(encoded(Image.fromarray(photo()), "PNG"))
    assert list(warnings.filters) == before


def test_threads_may_read_at_once_and_leave_no_trace() -> None:
    before = list(warnings.filters)
    good = encoded(Image.fromarray(photo()), "PNG")
    huge = png_claiming(11_000, 11_000)  # Pillow warns of it

    def read(number: int) -> bool:
        try:
            return bool((read_image(huge if number % 2 else good) == photo()).all())
        except DataError:
            return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(400)))
    assert list(warnings.filters) == before


# ---------------------------------------------------------------- preprocess


def test_squeeze_shows_the_whole_picture_and_crop_its_centre() -> None:
    assert visible_box(100, 200, LITE) == (0, 0, 200, 100)
    # short side 256 after scaling by 2.56, of which 224 stay: 87.5 pixels of the original
    assert visible_box(100, 200, TORCHVISION) == (56.25, 6.25, 143.75, 93.75)


@pytest.mark.parametrize("spec", [LITE, TORCHVISION])
def test_inputs_of_a_picture_hold_its_pixels_and_the_part_seen(
    spec: ImageSpec, tmp_path: Path
) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(encoded(Image.fromarray(photo(100, 200)), "PNG"))
    inputs = read_picture(path, spec, (7, 9))
    assert len(inputs) == 1
    stream = inputs["pictures"]
    assert stream.mask is None
    np.testing.assert_array_equal(stream.values, preprocess(photo(100, 200), spec)[None])
    assert stream.values.dtype == np.float32
    [layout] = inputs.layouts
    assert (layout.kind, layout.shape, layout.size) == ("grid", (7, 9), (200, 100))
    seen = (0, 0, 1, 1) if spec is LITE else (0.28125, 0.0625, 0.71875, 0.9375)
    assert layout.box == seen
    for other in (path.read_bytes(), photo(100, 200)):
        np.testing.assert_array_equal(
            read_picture(other, spec, (7, 9))["pictures"].values, stream.values
        )


def test_pictures_of_different_sizes_make_one_batch() -> None:
    examples = [read_picture(photo(40, 30 + n), LITE, (9, 9)) for n in range(3)]
    batch = Inputs.batch(examples)
    assert batch["pictures"].values.shape == (3, 3, 260, 260)
    assert [layout.size for layout in batch.layouts] == [(30, 40), (31, 40), (32, 40)]


def test_reading_inputs_checks_the_size_and_names_the_source() -> None:
    data = encoded(Image.fromarray(photo(100, 100)), "PNG")
    with pytest.raises(DataError, match=r"^the picture: too large: .* the limit is 9,999"):
        read_picture(data, LITE, (9, 9), name="the picture", max_pixels=9_999)


def test_crop_equals_resizing_then_cropping() -> None:
    picture = photo(300, 400)
    scaled = Image.fromarray(picture).resize((341, 256), Image.Resampling.BILINEAR)
    left = (341 - 224) / 2
    expected = np.asarray(
        scaled.crop((int(left), 16, int(left) + 224, 240)), np.float32
    )  # the paper's two steps, with whole pixels
    spec = ImageSpec(224, "crop")
    got = preprocess(picture, spec).transpose(1, 2, 0)
    assert np.abs(got - expected).mean() < 1.0


def test_values_follow_scale_mean_and_std() -> None:
    flat = np.empty((50, 70, 3), np.uint8)
    flat[:] = (10, 127, 255)
    got = preprocess(flat, LITE)
    assert got.shape == (3, 260, 260)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got[:, 5, 5], [(10 - 127) / 128, 0, 1.0], atol=1e-6)
    got = preprocess(flat, TORCHVISION)
    expected = [(10 / 255 - 0.485) / 0.229, (127 / 255 - 0.456) / 0.224, (1 - 0.406) / 0.225]
    np.testing.assert_allclose(got[:, 100, 100], expected, rtol=1e-5)


def test_thin_strips_and_single_pixels_do_not_blow_up() -> None:
    for shape in [(1, 100_000, 3), (100_000, 1, 3), (1, 1, 3), (2, 3, 3)]:
        for spec in (LITE, TORCHVISION):
            got = preprocess(np.full(shape, 200, np.uint8), spec)
            assert np.isfinite(got).all()
            assert np.ptp(got[0]) < 1e-5


def test_spec_goes_through_json() -> None:
    import json

    for spec in (LITE, TORCHVISION):
        assert ImageSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    with pytest.raises(DataError, match="unknown keys"):
        ImageSpec.from_json({"size": 10, "colour": 1})
    with pytest.raises(DataError, match="crop"):
        ImageSpec(224, "stretch")  # type: ignore[arg-type]


def test_wrong_arrays_are_refused() -> None:
    with pytest.raises(DataError, match="uint8"):
        preprocess(np.zeros((4, 4, 3), np.float32), LITE)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="H, W, 3"):
        preprocess(np.zeros((4, 4), np.uint8), LITE)


def test_reading_pictures_does_not_import_torch() -> None:
    code = "import sys, sightline.media.image; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
