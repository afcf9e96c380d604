"""Words that a picture may be about: found, attended to, copied."""

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from sightline.config import AttentionConfig, DecoderConfig, LossConfig
from sightline.data.imagenet import CLASSES, imagenet_words
from sightline.data.vocabulary import PAD, SPECIALS, Vocabulary
from sightline.errors import ConfigError
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.tags import KEEP, Tagger, renamed, tag_loss
from sightline.nn.heads import CopyHead
from sightline.nn.losses import sequence_loss
from sightline.nn.stepper import TorchStepper
from sightline.types import ContextSet

VOCAB = Vocabulary("word", (*SPECIALS, "a", "dog", "runs", "red", "tiger", "penguin"))
DOG, RED, TIGER, PENGUIN = (VOCAB.ids[word] for word in ("dog", "red", "tiger", "penguin"))
SIZE = 6  # D


def tagger(count=3):
    torch.manual_seed(2)
    return Tagger(SIZE, VOCAB, [RED, DOG], count)


def context(examples=2, cells=4):
    torch.manual_seed(5)
    values = torch.rand(examples, cells, SIZE)
    return ContextSet(values, torch.ones(examples, cells, dtype=torch.bool))


def decoder():
    torch.manual_seed(3)
    config = DecoderConfig(embedding=5, hidden=7, attention=AttentionConfig(size=4), head="copy")
    return Decoder(config, len(VOCAB), SIZE)


# ------------------------------------------------------------------------ words of classes


def test_every_word_is_one_lower_case_word_and_no_class_has_two():
    words = imagenet_words()
    assert all(word == word.lower() and len(word.split()) == 1 for word in words)
    classes = [number for numbers in words.values() for number in numbers]
    assert len(classes) == len(set(classes))
    assert 0 <= min(classes) < max(classes) < CLASSES
    assert words["tiger"] == [292]
    assert len(words["dog"]) > 118


def test_a_words_likelihood_is_the_sum_of_its_classes_or_its_own():
    tags, vectors = tagger(), context().values
    classes, words = tags.scores(vectors)
    likely, named = tags.likely(vectors)
    tokens = tags.tokens.tolist()
    assert tokens == sorted([DOG, RED, TIGER, PENGUIN])
    for number, token in enumerate(tokens):
        members = imagenet_words().get(VOCAB.tokens[token], [])
        by_class = F.softmax(classes, 1)[:, members].sum(1)
        torch.testing.assert_close(named[:, number], by_class)
        torch.testing.assert_close(
            likely[:, number], torch.maximum(by_class, torch.sigmoid(words[:, number]))
        )


def test_the_likeliest_words_follow_the_cells():
    tags, given = tagger(), context()
    made = tags(given)
    assert made.values.shape == (2, 7, SIZE)
    assert bool(made.mask.all())
    assert bool((made.tokens[:, :4] == PAD).all())
    likely, named = tags.likely(given.values)
    order = likely.argsort(1, descending=True)[:, :3]
    assert made.tokens[:, 4:].tolist() == tags.tokens[order].tolist()
    assert not made.sure[:, :4].any()  # of ImageNet's classes alone: what naming goes by
    torch.testing.assert_close(made.sure[:, 4:], named.gather(1, order))
    torch.testing.assert_close(made.values[:, :4], given.values)


def test_a_words_vector_is_its_classifiers_row():
    tags = tagger()
    rows = tags.rows()
    tokens = tags.tokens.tolist()
    expected = tags.classes.weight[292] / tags.classes.weight[292].norm() * SIZE**0.5
    torch.testing.assert_close(rows[tokens.index(TIGER)], expected)
    red = tags.words.weight[tokens.index(RED)]  # no class is called red
    torch.testing.assert_close(rows[tokens.index(RED)], red / red.norm() * SIZE**0.5)


def test_tag_loss_is_what_two_plain_losses_give():
    tags, vectors = tagger(), context().values
    targets = torch.tensor([[4, DOG, 6], [4, RED, PAD], [4, TIGER, 6], [PAD, PAD, PAD]])
    published = torch.randn(2, CLASSES)
    classes, words = tags.scores(vectors)
    present = torch.tensor([[t in row for t in tags.tokens] for row in ([DOG, RED], [TIGER])])
    bce = F.binary_cross_entropy_with_logits(words, present.float(), reduction="sum") / 2
    kept = F.cross_entropy(classes, F.softmax(published, 1))
    torch.testing.assert_close(tag_loss(tags, vectors, targets, published), bce + KEEP * kept)
    torch.testing.assert_close(tag_loss(tags, vectors, targets), bce)


def test_the_captions_loss_does_not_move_the_classifiers():
    tags = tagger()
    tags(context()).values.sum().backward()
    assert tags.classes.weight.grad is None
    assert tags.words.weight.grad is None
    assert tags.kind.grad is not None


def test_renaming_changes_a_tag_and_its_word_alike_and_nothing_else():
    torch.manual_seed(0)
    tokens = torch.tensor([[0, 0, DOG, RED], [0, 0, TIGER, RED]])
    targets = torch.tensor([[1, 4, DOG, 2], [1, DOG, 6, 2], [1, 4, 6, 2], [1, 6, 2, PAD]])
    words = torch.tensor([PENGUIN])
    named, written = renamed(tokens, targets, words, 1.0)
    assert named.tolist() == [[0, 0, PENGUIN, RED], [0, 0, TIGER, RED]]  # no target has the second
    expected = torch.where(targets == DOG, PENGUIN, targets)
    assert written.tolist() == expected.tolist()
    assert tokens[0, 2] == DOG
    assert targets[0, 2] == DOG  # what was given stays
    same = renamed(tokens, targets, words, 0.0)
    assert [part.tolist() for part in same] == [tokens.tolist(), targets.tolist()]
    taken = renamed(tokens, targets, torch.tensor([RED]), 1.0)  # a tag of the example already
    assert taken[0].tolist() == tokens.tolist()


# ----------------------------------------------------------------------------- copying


def test_probabilities_are_a_mixture_of_writing_and_copying():
    model, tags = decoder(), tagger()
    state = model.start(tags(context()), per_example=2)  # N = 4
    head = model.output
    assert isinstance(head, CopyHead)
    readouts = torch.randn(4, model.readout_size)
    log_probs = head(readouts, state.pointers)
    np.testing.assert_allclose(log_probs.exp().sum(1).detach(), 1, rtol=1e-5)
    for row in range(4):
        example = row // 2
        keys = state.pointers.values[example] @ head.pointer.key.weight.t() + head.pointer.key.bias
        hidden = torch.tanh(keys + head.pointer.query(readouts[row]))
        weights = (hidden @ head.pointer.score.weight[0]).softmax(0)  # (K,)
        gate = torch.sigmoid(head.share(readouts[row]))
        expected = (1 - gate) * F.softmax(readouts[row] @ head.weight.t() + head.bias, 0)
        for weight, token in zip(weights, state.pointers.tokens[example], strict=True):
            expected[token] = expected[token] + gate[0] * weight
        torch.testing.assert_close(log_probs[row].exp(), expected)


@pytest.mark.parametrize("without", [(), (3,)])
def test_the_likelihood_is_that_of_the_probabilities_and_so_is_its_gradient(without):
    model, tags = decoder(), tagger()
    tokens = torch.tensor([[1, 4, DOG, 2], [1, 4, PENGUIN, 2]])
    results = []
    for way in ("likelihood", "probabilities"):
        model.zero_grad()
        decoded = model(tokens[:, :-1], model.start(tags(context())))
        targets, real = tokens[:, 1:], tokens[:, 1:] != PAD
        pointers = decoded.state.pointers
        if way == "likelihood":
            chosen, _ = model.output.likelihood(
                decoded.readouts, targets, real, pointers, without=without
            )
        else:
            log_probs = model.output(decoded.readouts, pointers, without)
            chosen = log_probs.gather(-1, targets[..., None])[real][:, 0]
        chosen.sum().backward()
        results.append((chosen.detach(), [p.grad.clone() for p in model.output.parameters()]))
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-6)


def test_a_word_that_no_target_had_can_be_written():
    model, tags = decoder(), tagger()
    head = model.output
    with torch.no_grad():
        head.bias[PENGUIN] = -1e4
        state = model.start(tags(context()))
        readouts = torch.randn(2, model.readout_size)
        tagged = (state.pointers.tokens == PENGUIN).any(1)
        log_probs = head(readouts, state.pointers)[:, PENGUIN]
    assert bool(tagged.any())
    assert bool((log_probs[tagged] > -10).all())


def test_teacher_forcing_equals_steps():
    model, tags = decoder().eval(), tagger()
    tokens = torch.tensor([[1, 4, DOG, 6], [1, 4, PENGUIN, 5]])
    state = model.start(tags(context()))
    whole = model.log_probs(model(tokens, state))
    for t in range(4):
        logits, _, state = model.step(tokens[:, t], state)
        torch.testing.assert_close(logits.log_softmax(-1), whole[:, t])


def test_a_batch_equals_its_singles():
    model, tags = decoder().eval(), tagger()
    given = context()
    both = model.log_probs(model(torch.tensor([[1, 4], [1, 5]]), model.start(tags(given))))
    for row, first in enumerate((4, 5)):
        one = given.select(torch.tensor([row]))
        alone = model.log_probs(model(torch.tensor([[1, first]]), model.start(tags(one))))
        torch.testing.assert_close(alone[0], both[row])


def test_rows_that_are_selected_keep_their_tags():
    model, tags = decoder().eval(), tagger()
    stepper = TorchStepper(model)
    state = stepper.start(tags(context()))
    chosen = stepper.select(state, np.array([1]))
    tokens = np.array([1, 1])
    both = stepper.step(state, tokens).log_probs
    np.testing.assert_allclose(
        stepper.step(chosen, tokens[:1]).log_probs[0], both[1], rtol=1e-5, atol=1e-6
    )


def test_the_penalty_is_for_cells_only():
    model, tags = decoder(), tagger()
    targets = torch.tensor([[4, DOG], [4, 6]])
    decoded = model(torch.tensor([[1, 4], [1, 4]]), model.start(tags(context())))
    _, loss = sequence_loss(model, decoded, targets, LossConfig(doubly_stochastic=1.0))
    looked = decoded.weights[..., :4].sum(1).detach()
    assert loss.parts["doubly_stochastic"] == pytest.approx(
        float((1 - looked).square().sum(1).mean()), rel=1e-5
    )


def test_copying_needs_an_encoder_that_names_words():
    with pytest.raises(ConfigError, match=r"encoder\.tags"):
        decoder().start(context())
