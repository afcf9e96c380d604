"""Glimpses: what is looked at, where, and that the rest of the picture is never touched."""

import pytest
import torch
from benchmarks.large_pictures import DISC, draw

from sightline.config import GlimpseConfig
from sightline.nn.encoders.glimpses import PIXELS, GlimpseEncoder, cut, look
from sightline.types import Inputs, Stream

SMALL = GlimpseConfig(coarse=32, glimpses=3, side=16, apart=24, dimension=8, largest=400)


def encoder(config=SMALL):
    torch.manual_seed(0)
    return GlimpseEncoder(config).eval()


def pictures(count, height, width):
    torch.manual_seed(1)
    return torch.randint(0, 256, (count, height, width, 3), dtype=torch.uint8)


def read(model, pixels):
    return model(Inputs(len(pixels), {PIXELS: Stream(pixels)}))


def test_a_larger_picture_has_no_more_pixels_touched():
    touched = []
    for side in (200, 400, 1600):
        pixels = pictures(1, side, side).float().requires_grad_()
        read(encoder(), pixels).values.sum().backward()
        centres, _ = encoder().choose(pixels.detach())
        coarse, _ = torch.autograd.grad(look(pixels, side / 32).sum(), pixels)[0].max(3)
        at_glimpses = (pixels.grad.abs().sum(3) > 0).sum()
        touched.append(int((coarse > 0).sum() + at_glimpses))
        assert centres.shape == (1, 3, 2)
        assert touched[-1] <= 4 * 32 * 32 + 3 * 16 * 16
    assert touched[2] <= touched[1] * 1.1


def test_other_pixels_make_no_difference():
    model = encoder()
    pixels = pictures(1, 300, 300)
    changed = torch.randint_like(pixels, 256)
    floats = pixels.float().requires_grad_()
    (look(floats, 300 / 32).sum() + cut(floats, model.choose(pixels)[0], 16).sum()).backward()
    seen = floats.grad != 0
    context = read(model, torch.where(seen, pixels, changed))
    torch.testing.assert_close(context.values, read(model, pixels).values)
    assert 0.01 < float(seen.float().mean()) < 0.1


def test_a_batch_equals_its_singles_and_sizes_may_be_any():
    model = encoder()
    pixels = pictures(3, 140, 90)
    together = read(model, pixels)
    for row in range(3):
        alone = read(model, pixels[row : row + 1])
        torch.testing.assert_close(alone.values[0], together.values[row], atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(alone.bias[0], together.bias[row], atol=1e-5, rtol=1e-4)


def test_glimpses_are_apart_and_best_first():
    centres, scores = encoder().choose(pictures(2, 400, 300))
    for row in range(2):
        distances = (centres[row][:, None] - centres[row]).abs().amax(2) + 1e9 * torch.eye(3)
        assert float(distances.min()) >= SMALL.apart
        assert scores[row].tolist() == sorted(scores[row].tolist(), reverse=True)


def test_a_glimpse_is_the_picture_at_full_resolution_and_moves_inwards_at_an_edge():
    pixels = pictures(1, 100, 120)
    crops = cut(pixels, torch.tensor([[[50.0, 60.0], [2.0, 119.0]]]), 16)
    torch.testing.assert_close(crops[0, 0], pixels[0, 42:58, 52:68])
    torch.testing.assert_close(crops[0, 1], pixels[0, 0:16, 104:120])
    tiny = cut(pictures(1, 5, 5), torch.tensor([[[2.0, 2.0]]]), 16)  # what is there, repeated
    assert tiny.shape == (1, 1, 16, 16, 3)


def test_the_scores_learn_from_the_attention():
    model = encoder().train()
    context = read(model, pictures(2, 100, 100))
    torch.softmax(context.bias, 1)[:, 0].sum().backward()
    assert all(p.grad is not None and bool(p.grad.any()) for p in model.score[0].parameters())


def test_exploring_changes_where_it_looks_in_training_alone():
    model, pixels = encoder(), pictures(1, 200, 200)
    torch.testing.assert_close(model.choose(pixels)[0], model.choose(pixels)[0])
    model.train()
    assert len({tuple(model.choose(pixels)[0].flatten().tolist()) for _ in range(4)}) > 1


@pytest.mark.parametrize("side", [320, 1024])
def test_the_made_pictures_say_what_is_in_them(side):
    import numpy as np

    picture, text = draw(np.random.default_rng(5), side)
    again, same = draw(np.random.default_rng(5), side)
    assert (picture == again).all()
    assert text == same
    assert picture.shape == (side, side, 3)
    words = text.split()
    assert words[::2] == sorted(words[::2])
    white = (picture == 255).all(2).sum()  # digits
    assert 100 < white < 2 * DISC * DISC
