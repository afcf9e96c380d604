"""Scheduled sampling: what the decoder reads against the enumeration of all it could read."""

import itertools

import pytest
import torch

from given import given, vectors
from sightline.config import AttentionConfig, DecoderConfig, LossConfig
from sightline.data.vocabulary import BEGIN, END, PAD
from sightline.nn.decoder import Decoder
from sightline.nn.losses import sequence_loss
from sightline.nn.model import Batch, EncoderDecoder
from sightline.nn.objectives import Likelihood, scheduled_sampling
from sightline.types import ContextSet

V, D = 6, 4  # 4 special tokens and two words
WORDS = (4, 5)


def tiny(*, share=0.0, kind="content", hard=False, dropout=0.0):
    torch.manual_seed(1)
    config = DecoderConfig(
        embedding=5,
        hidden=6,
        attention=AttentionConfig(kind=kind, size=4, hard=hard),
        context=("state",),
        dropout=dropout,
    )
    model = (
        EncoderDecoder(given(D), Decoder(config, V, D), Likelihood(scheduled_sampling=share))
        .double()
        .train()
    )
    with torch.no_grad():  # its words depend on the words before
        model.decoder.embed.weight.mul_(3)
        model.decoder.recurrent.weight_ih_l0.mul_(3)
        model.decoder.output.weight.mul_(2)
    return model


def batch_of(targets, context, progress=1.0):
    return Batch(targets, vectors(context.values, context.mask), progress=progress)


def context_of(examples):
    torch.manual_seed(4)
    values = torch.randn(1, 3, D, dtype=torch.float64).expand(examples, -1, -1)
    return ContextSet(values, torch.ones(examples, 3, dtype=torch.bool))


@pytest.mark.parametrize("kind", ["content", "none"])
def test_each_word_is_the_true_one_or_drawn_given_all_that_was_read(kind):
    model, share, rows = tiny(kind=kind, dropout=0.5), 0.4, 40_000  # drawn without dropout
    true = [BEGIN, 4, 4, 5]
    state = model.decoder.start(context_of(1), per_example=rows)
    torch.manual_seed(5)
    read = scheduled_sampling(model.decoder, torch.tensor([true]).expand(rows, -1), state, share)
    assert model.training

    paths = list(itertools.product(WORDS, repeat=3))
    model.eval()
    every = torch.tensor([[BEGIN, *path] for path in paths])
    with torch.no_grad():
        decoded = model.decoder(every, model.decoder.start(context_of(1), per_example=len(paths)))
        likely = model.decoder.output(decoded.readouts)[..., list(WORDS)].softmax(-1)
    for number, path in enumerate(paths):
        expected = 1.0
        for t, word in enumerate(path):
            drawn = float(likely[number, t, WORDS.index(word)])
            expected *= share * drawn + (1 - share) * (word == true[t + 1])
        found = float((read[:, 1:] == torch.tensor(path)).all(1).double().mean())
        assert found == pytest.approx(expected, abs=4 * (expected / rows) ** 0.5), path
    assert float(likely[:, 1, 0].max() - likely[:, 1, 0].min()) > 0.1  # or nothing was shown


def test_the_loss_is_that_of_the_true_words_after_what_was_read():
    model = tiny(share=1.0)
    targets = torch.tensor([[BEGIN, 4, 5, 4, END], [BEGIN, 5, END, PAD, PAD]] * 8)
    context = context_of(len(targets))
    torch.manual_seed(6)
    loss, _ = model.loss(batch_of(targets, context, progress=0.5))  # half way
    torch.manual_seed(6)
    state = model.decoder.start(context)
    read = scheduled_sampling(model.decoder, targets[:, :-1], state, 0.5)
    assert bool((read != targets[:, :-1]).any())
    assert torch.equal(read[:, 0], targets[:, 0])
    assert torch.equal(read == PAD, targets[:, :-1] == PAD)
    _, expected = sequence_loss(
        model.decoder, model.decoder(read, state), targets[:, 1:], LossConfig()
    )
    assert loss.total.item() == pytest.approx(expected.total.item(), rel=1e-12)


def test_a_model_that_does_not_train_reads_the_true_words():
    model, targets = tiny(share=0.9).eval(), torch.tensor([[BEGIN, 4, 5, 4, END]])
    expected, _ = model.loss(batch_of(targets, context_of(1), progress=0.0))
    found, _ = model.loss(batch_of(targets, context_of(1)))
    assert torch.equal(found.total, expected.total)


def test_hard_attention_reads_drawn_words_too():
    model, targets = tiny(share=0.9, hard=True), torch.tensor([[BEGIN, 4, 5, 4, END]] * 6)
    seen = []
    model.decoder.embed.register_forward_hook(lambda _, given, __: seen.append(given[0]))
    loss, _ = model.loss(batch_of(targets, context_of(6)))
    loss.total.backward()
    assert bool((seen[-1] != targets[:, :-1]).any())
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)


def test_the_model_is_run_no_further_than_the_last_word_that_is_drawn(monkeypatch):
    model = tiny()
    before = torch.tensor([[BEGIN, 4, 5, 4, 5, 4]] * 2)
    state, steps = model.decoder.start(context_of(2)), []
    step = model.decoder.step
    monkeypatch.setattr(model.decoder, "step", lambda *args: (steps.append(1), step(*args))[1])
    chances = torch.ones(2, 6)
    chances[0, 0] = chances[1, 2] = 0.0  # <begin> is never drawn
    monkeypatch.setattr(torch, "rand", lambda *args, **options: chances)
    read = scheduled_sampling(model.decoder, before, state, 0.5)
    assert len(steps) == 2
    assert torch.equal(read[0], before[0])
