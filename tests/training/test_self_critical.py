"""Self-critical training against the exact gradient of the expected score, by enumeration."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from given import given, vectors
from sightline.config import AttentionConfig, DecoderConfig, HardConfig, LossConfig
from sightline.data.vocabulary import BEGIN, END, PAD, UNKNOWN, Vocabulary
from sightline.errors import ConfigError
from sightline.metrics import Cider, Corpus, DocumentFrequencies
from sightline.metrics.meteor_metric import MeteorMetric
from sightline.nn.decoder import Decoder
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.nn.objectives import Likelihood
from sightline.training.self_critical import CaptionReward, SelfCritical

V, LENGTH, PLACES = 6, 3, 2  # tokens 4 and 5 are words


def reward(items, written):
    return np.array([score(list(tokens)) for tokens in written])


def tiny(hard=False, samples=200):
    torch.manual_seed(1)
    config = DecoderConfig(embedding=4, hidden=5, attention=AttentionConfig(size=4, hard=hard))
    loss = LossConfig(hard=HardConfig(reward=1.0, entropy=0.0, expectation=0.0))
    objective = SelfCritical(reward, samples, LENGTH, loss)
    model = EncoderDecoder(given(3), Decoder(config, V, 3), objective)
    with torch.no_grad():
        model.decoder.output.weight.mul_(3)
    if hard:
        with torch.no_grad():  # sharp enough that places differ
            model.decoder.attention.score.weight.mul_(6)
            model.decoder.recurrent.weight_ih_l0.mul_(3)
    return model, vectors(torch.randn(1, PLACES, 3))


def score(tokens):
    """Any score that depends on the whole sequence."""
    return float(tokens.count(4) * 1.5 + (tokens[-1] == END) - 0.3 * len(tokens) + (5 in tokens))


def everything():
    """Every output: words, then the end token, or cut off at the greatest length."""
    for words in range(LENGTH):
        for body in itertools.product((4, 5), repeat=words):
            yield [*body, END]
    yield from ([*body] for body in itertools.product((4, 5), repeat=LENGTH))


def gradient(model):
    grads = [p.grad.flatten() for p in model.parameters() if p.grad is not None]
    return torch.cat(grads)


def exact(model, features):
    """−∂E[score]: over every output, and with hard attention over every path of places as well."""
    model.zero_grad()
    model.eval()
    outputs = list(everything())
    pairs = [(tokens, ()) for tokens in outputs]
    if model.hard is not None:
        pairs = [
            (tokens, path)
            for tokens in outputs
            for path in itertools.product(range(PLACES), repeat=len(tokens))
        ]
    targets = pad([[BEGIN, *tokens] for tokens, _ in pairs])
    mask = targets[:, 1:] != PAD
    looks = None if model.hard is None else pad([list(path) for _, path in pairs])
    state = model.decoder.start(model.encode(features), per_example=len(pairs))
    decoded = model.decoder(targets[:, :-1], state, looks)
    logits = model.decoder.output(decoded.readouts)
    possible = [token for token in range(V) if token != UNKNOWN]  # sampling never draws it
    normaliser = logits[..., possible].logsumexp(-1)
    chosen = logits.gather(-1, targets[:, 1:, None])[..., 0] - normaliser
    if looks is not None:
        chosen = chosen + decoded.weights.gather(-1, looks[..., None])[..., 0].log()
    probability = chosen.masked_fill(~mask, 0).sum(1).exp()
    assert float(probability.detach().sum()) == pytest.approx(1.0, abs=1e-4)
    expected = (probability * torch.tensor([score(tokens) for tokens, _ in pairs])).sum()
    (-expected).backward()
    return gradient(model)


@pytest.mark.parametrize("hard", [False, True])
def test_the_mean_of_the_estimator_is_the_exact_gradient(hard):
    model, features = tiny(hard)
    wanted = exact(model, features)
    drawn = estimates(model, features)
    error = drawn.std(0) / len(drawn) ** 0.5
    z = (drawn.mean(0) - wanted) / error.clamp_min(1e-6)
    assert float(z.abs().max()) < 5
    assert float(error.norm() / wanted.norm()) < 0.2


def test_without_credit_for_its_places_hard_attention_would_learn_something_else():
    model, features = tiny(hard=True)
    wanted = exact(model, features)
    model.hard.config = replace(model.hard.config, reward=0.0)
    drawn = estimates(model, features)
    z = (drawn.mean(0) - wanted) / (drawn.std(0) / len(drawn) ** 0.5).clamp_min(1e-6)
    assert float(z.abs().max()) > 10


def estimates(model, features):
    """Independent estimates of the gradient, each from 200 outputs."""
    gradients = []
    batch = Batch(torch.zeros(1, 1, dtype=torch.long), features)
    for _ in range(60):
        model.zero_grad()
        loss, _ = model.train().loss(batch)
        # the loss is per token; the expectation is per output
        (loss.total * loss.tokens / 200).backward()
        gradients.append(gradient(model))
    return torch.stack(gradients)


def test_dropout_is_refused():
    config = DecoderConfig(embedding=4, hidden=5, attention=AttentionConfig(size=4), dropout=0.1)
    with pytest.raises(ConfigError, match=r"set model.dropout=0"):
        EncoderDecoder(given(3), Decoder(config, V, 3), SelfCritical(reward, 2, LENGTH))


def test_out_of_training_the_loss_is_the_likelihood_of_the_targets():
    model, features = tiny()
    batch = Batch(torch.tensor([[BEGIN, 4, 5, END]]), features)
    loss, _ = model.eval().loss(batch)
    expected, _ = Likelihood()(model, batch)
    assert loss.nats == expected.nats > 0


def test_it_raises_the_score():
    model, features = tiny(samples=20)
    batch = Batch(torch.zeros(1, 1, dtype=torch.long), features)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    rewards = []
    for _ in range(60):
        loss, _ = model.loss(batch)
        optimiser.zero_grad()
        loss.total.backward()
        optimiser.step()
        rewards.append(loss.parts["reward"])
    best = max(score(tokens) for tokens in everything())
    assert np.mean(rewards[-5:]) > 0.8 * best > np.mean(rewards[:5])


def test_the_reward_is_the_weighted_sum_of_the_metrics_of_marked_captions():
    pytest.importorskip("pycocoevalcap")
    texts = {
        "one": ["a dog runs on the grass", "the brown dog is running"],
        "two": ["two men talk", "two men are talking on a bench"],
    }
    vocab = Vocabulary.build("word", [text for several in texts.values() for text in several])
    written = ["a dog runs", "a dog", "two men talk", "a bench"]
    tokens = [[*vocab.encode(text), END] for text in written]
    tokens[1].pop()  # was cut off: it has no mark
    reward = CaptionReward(vocab, [texts], cider=1.0, meteor=3.0)
    marked = {item: [f"{text} zzz" for text in several] for item, several in texts.items()}
    metrics = Cider(frequencies=DocumentFrequencies.of(marked)), MeteorMetric()
    for number, (value, item) in enumerate(
        zip(reward(["one", "two"], tokens), ["one", "one", "two", "two"], strict=True)
    ):
        text = written[number] + ("" if number == 1 else " zzz")
        corpus = Corpus.of({0: text}, {0: marked[item]})
        cider, meteor = (float(m.item_scores(m.statistics(corpus))[0, 0]) for m in metrics)
        assert value == pytest.approx(cider + 3 * meteor)


def test_fluency_is_the_share_of_words_in_a_row_that_some_caption_has():
    texts = ["a dog runs on the grass", "a cat sits on the sofa"]
    vocab = Vocabulary.build("word", texts)
    references = {number: [text] for number, text in enumerate(texts)}
    reward = CaptionReward(vocab, [references], cider=0, fluency=2.0)

    def fluency(text, ended=True):
        return float(reward([0], [[*vocab.encode(text), *[END] * ended]])[0]) / 2

    assert fluency("a dog runs on the grass") == 1
    # of "a", "a dog", …, "on the sofa <end>", what crosses from one caption to the other is new:
    # "runs on the sofa" is, and nothing after it
    assert fluency("a dog runs on the sofa") == pytest.approx(6 / 7)
    assert fluency("a dog runs on the") == pytest.approx(5 / 6)  # "runs on the <end>"
    assert fluency("a dog runs on the", ended=False) == 1
    assert fluency("grass grass") == 0


def test_a_low_temperature_draws_what_is_likeliest():
    model, features = tiny(samples=50)
    sampled = model.objective
    model.objective = SelfCritical(reward, 50, LENGTH, LossConfig(), temperature=0.01)
    model.train()
    batch = Batch(torch.tensor([[BEGIN]]), features, items=("a",))
    assert model.loss(batch)[0].parts["advantage"] == pytest.approx(0, abs=1e-5)
    model.objective = sampled
    assert model.loss(batch)[0].parts["advantage"] > 0.1


def test_words_are_weighed_by_the_items_own_data_set():
    sets = [
        {"a": ["a dog runs", "a dog"], "b": ["a dog sits"], "c": ["a dog"]},
        {"d": ["a dog runs", "a dog"], "e": ["a cat sits"], "f": ["a horse"]},
    ]
    words = {
        word for some in sets for texts in some.values() for text in texts for word in text.split()
    }
    vocab = Vocabulary.build("word", [" ".join(words)], 20)
    written = [[*vocab.encode(text), END] for text in ("a dog sits", "a cat runs")]
    both = CaptionReward(vocab, sets)
    for some in sets:
        for item in some:
            alone = CaptionReward(vocab, [some])
            assert both([item], written) == pytest.approx(alone([item], written))
    together = both(["a", "d", "b"], [*written, *written, *written])
    assert together[2:4] == pytest.approx(both(["d"], written))
    assert together[0] != pytest.approx(together[2])
