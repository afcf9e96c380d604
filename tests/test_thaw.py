"""An export can be trained on: its weights are read back from its graphs."""

import shutil

import numpy as np
import onnx
import pytest
import torch
from safetensors.torch import load_file

import sightline
from sightline.errors import CheckpointError
from sightline.export.thaw import thaw
from sightline.export.write import Check, export
from sightline.nn.encoders.image import build_encoder, for_inference, unfold
from sightline.runtime.model_folder import STEP, find_model, record_file
from small_models import pictures, save_captioner, save_language_model, save_translator


@pytest.fixture(scope="module", params=[0, 3], ids=["plain", "tags"])
def frozen(request, tmp_path_factory):
    """A captioner, and its export in 16 bits."""
    folder = tmp_path_factory.mktemp("frozen")
    export(save_captioner(folder / "captioner", request.param), folder / "export")
    return folder


def test_weights_come_back_as_precise_as_they_were_stored(frozen, tmp_path):
    thaw(frozen / "export", tmp_path / "thawed")
    before = load_file(frozen / "captioner" / "weights.safetensors")
    after = load_file(tmp_path / "thawed" / "weights.safetensors")
    assert after.keys() == before.keys()
    for name in [name for name in before if not name.startswith("encoder.pictures.")]:
        assert torch.allclose(before[name], after[name], rtol=0, atol=1e-4), name


def test_a_thawed_captioner_describes_as_its_export_does(frozen, tmp_path):
    thaw(frozen / "export", tmp_path / "thawed")
    first, second = (sightline.load(f) for f in (frozen / "export", tmp_path / "thawed"))
    for picture in pictures(4):
        one, other = first.describe(picture), second.describe(picture)
        assert one.text == other.text
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-3)
        seen, same = (m.encode(m.reader.read(picture)[0]).values for m in (first, second))
        np.testing.assert_allclose(seen, same, rtol=1e-3, atol=1e-3)


def test_a_language_model_is_thawed_from_8_bits(tmp_path):
    source = save_language_model(tmp_path / "run")
    (tmp_path / "text.txt").write_text("abc\nfed " * 200)
    export(source, tmp_path / "export", "int8", Check(tmp_path / "text.txt"))
    thaw(tmp_path / "export", tmp_path / "thawed")
    before, after = (load_file(f / "weights.safetensors") for f in (source, tmp_path / "thawed"))
    for name, tensor in before.items():
        assert torch.allclose(tensor, after[name], rtol=0, atol=float(tensor.abs().max()) / 60)


def test_encoders_of_other_kinds_cannot_be_read_back(tmp_path):
    export(save_translator(tmp_path / "run"), tmp_path / "export")
    with pytest.raises(CheckpointError, match="cannot be read back"):
        thaw(tmp_path / "export", tmp_path / "thawed")


def test_a_graph_that_is_written_otherwise_is_refused(frozen, tmp_path):
    folder = shutil.copytree(frozen / "export", tmp_path / "export")
    model = onnx.load(folder / STEP)
    model.graph.node[3].name = "another"
    onnx.save(model, folder / STEP)
    record_file(folder, STEP)
    with pytest.raises(CheckpointError, match="written by another Sightline"):
        thaw(folder, tmp_path / "thawed")


@pytest.mark.parametrize("name", ["efficientnet_lite0", "resnet50"])
def test_unfolding_undoes_the_folding_of_batch_norm(name):
    torch.manual_seed(0)
    first, second = (build_encoder(name, size=64) for _ in range(2))
    for module in first.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.2, 0.2)
            module.running_var.uniform_(0.5, 2)
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.uniform_(-0.2, 0.2)
    unfold(second, for_inference(first))
    picture = torch.rand(1, 3, 64, 64)
    with torch.inference_mode():
        expected, found = first(picture), second(picture)
    assert torch.allclose(expected, found, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))


def test_the_captioner_that_ships_can_be_trained_on(tmp_path):
    thaw(find_model("default"), tmp_path / "thawed")
    shipped, thawed = sightline.load("default"), sightline.load(tmp_path / "thawed")
    from sightline.samples import samples

    for sample in samples()[:2]:
        one, other = shipped.describe(sample.path), thawed.describe(sample.path)
        assert one.score == pytest.approx(other.score, abs=0.05)
