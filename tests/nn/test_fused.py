"""The hand-written gradients against autograd's, of the same equations written plainly."""

import shutil
from dataclasses import replace

import pytest
import torch

from sightline.config import AttentionConfig, DecoderConfig, LossConfig
from sightline.data.vocabulary import BEGIN, END, PAD
from sightline.nn.decoder import Decoder
from sightline.nn.kernels import additive, fused
from sightline.nn.kernels.packing import Packing
from sightline.nn.losses import sequence_loss
from sightline.types import ContextSet

V, D, M, B = 11, 5, 4, 3

CONFIGS = {
    "xu": DecoderConfig(embedding=6, hidden=7, attention=AttentionConfig(size=6)),
    "of an odd size": DecoderConfig(embedding=6, hidden=7, attention=AttentionConfig(size=5)),
    "no gate, cold, plain output": DecoderConfig(
        embedding=6,
        hidden=7,
        gate=False,
        output="plain",
        attention=AttentionConfig(size=4, temperature=0.5),
    ),
    "all ways in": DecoderConfig(
        embedding=6,
        hidden=7,
        attention=AttentionConfig(size=6),
        context=("state", "first", "every"),
    ),
}


@pytest.fixture
def plainly(monkeypatch):
    """Runs a function with every fused path switched off."""

    def run(function):
        with monkeypatch.context() as patch:
            patch.setattr(fused, "usable", lambda _: False)
            patch.setattr(fused, "scorer", None)  # would be noticed
            return function()

    return run


def setting(config, each=1, steps=6, dtype=torch.float64):
    torch.manual_seed(0)
    decoder = Decoder(config, V, D).to(dtype)
    mask = torch.ones(B, M, dtype=torch.bool)
    mask[1, 2:] = False
    values = torch.randn(B, M, D, dtype=dtype) * mask[..., None]
    tokens = torch.randint(3, V, (B * each, steps + 1))
    tokens[:, 0] = BEGIN
    return decoder, values, mask, tokens


def everything(decoder, values, mask, tokens, each=1, of_values=True, chosen=None, expected=None):
    """The outputs of a teacher-forced pass and the gradients of a loss that uses all of them."""
    values = values.clone().requires_grad_(of_values)
    decoder.zero_grad()
    state = decoder.start(ContextSet(values, mask), per_example=each)
    decoded = decoder(tokens[:, :-1], replace(state, expected=expected), chosen)
    loss = sequence_loss(decoder, decoded, tokens[:, 1:], LossConfig(doubly_stochastic=0.7))[1]
    after = decoded.state
    used = (decoded.used * torch.arange(mask.shape[1])).square().mean()
    total = loss.total + used + after.attended.square().sum()
    (total + sum(part.sin().sum() for part in after.recurrent)).backward()
    outputs = (decoded.readouts, decoded.weights, decoded.used, after.attended, *after.recurrent)
    gradients = {name: p.grad.clone() for name, p in decoder.named_parameters()}
    return [x.detach() for x in outputs], gradients | {"values": values.grad}


def assert_equal(ours, plain):
    torch.testing.assert_close(ours[0], plain[0])
    assert ours[1].keys() == plain[1].keys()
    for name, gradient in plain[1].items():
        if gradient is None:
            assert ours[1][name] is None
        else:
            torch.testing.assert_close(ours[1][name], gradient, msg=name)


TILES = {"all": additive.TILE, "two examples": 2 * M * 6, "one example": 1}


@pytest.fixture(params=["compiled", *TILES])
def tiles(request, monkeypatch):
    """Compiled; or what a tile has room for: everything here; two of three examples; or one."""
    if request.param == "compiled":
        if additive.compiled(torch.float64) is None:
            pytest.skip("no C compiler on this machine")
        return
    monkeypatch.setattr(additive, "compiled", lambda _: None)
    monkeypatch.setattr(additive, "TILE", TILES[request.param])
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)


# ------------------------------------------------------------------------------------ the loop


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("each", [1, 3])
@pytest.mark.parametrize("of_values", [True, False])
def test_the_loop_equals_stepping(name, each, of_values, plainly):
    decoder, *inputs = setting(CONFIGS[name], each)
    ours = everything(decoder, *inputs, each, of_values)
    assert_equal(ours, plainly(lambda: everything(decoder, *inputs, each, of_values)))


def test_the_loop_is_what_the_decoder_runs(monkeypatch):
    called = []
    loop = fused.attend_and_advance
    monkeypatch.setattr(fused, "attend_and_advance", lambda *a: called.append(1) or loop(*a))
    decoder, *inputs = setting(CONFIGS["xu"])
    everything(decoder, *inputs)
    assert called == [1]


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("tiles", ["compiled", "all"], indirect=True)
@pytest.mark.parametrize("large", ["key", "query"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_keys_and_queries_that_have_no_exponentials(large, dtype, plainly):
    """Beyond what exp(2k) can hold: all keys, or all queries with keys that are small."""
    decoder, *inputs = setting(CONFIGS["xu"], each=2, dtype=dtype)
    attention = decoder.attention
    with torch.no_grad():
        if large == "key":
            attention.key.weight.mul_(1e4)
        else:
            attention.key.bias.copy_(torch.linspace(-1000, 1000, 6))  # the query's, in effect
    ours = everything(decoder, *inputs, 2)
    plain = plainly(lambda: everything(decoder, *inputs, 2))
    assert all(bool(torch.isfinite(x).all()) for x in ours[0])
    assert_equal(ours, plain)


LENGTHS = {
    "in any order": [3, 6, 1, 4, 2, 6],
    "the longest first": [6, 5, 4, 3, 2, 1],
    "none to the end": [2, 4, 3, 4, 1, 4],
    "nothing at all": [6, 0, 0, 0, 0, 0],
}


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("hard", [False, True])
def test_rows_that_have_ended_take_no_part(lengths, each, hard, plainly):
    """Their loss and gradients are those of rows that are read to the end of the padding."""
    config = DecoderConfig(embedding=6, hidden=7, attention=AttentionConfig(size=6, hard=hard))
    decoder, values, mask, tokens = setting(config, each)
    lengths = torch.tensor(lengths[: len(tokens)])[:, None]
    at = torch.arange(tokens.shape[1])
    tokens = tokens.where(at < lengths, END).where(at <= lengths, PAD)
    tokens[:, 0] = BEGIN
    chosen = torch.randint(0, 2, (len(tokens), 6)) if hard else None
    real = tokens[:, 1:] != PAD

    def run():
        decoder.zero_grad()
        given = values.clone().requires_grad_()
        state = decoder.start(ContextSet(given, mask), per_example=each)
        decoded = decoder(tokens[:, :-1], state, chosen=chosen)
        config = LossConfig(doubly_stochastic=0.7, label_smoothing=0.1)
        sequence_loss(decoder, decoded, tokens[:, 1:], config)[1].total.backward()
        outputs = (decoded.readouts, decoded.weights, decoded.used)
        gradients = [p.grad.clone() for p in decoder.parameters() if p.grad is not None]
        return [x[real].detach() for x in outputs], [given.grad, *gradients]

    torch.testing.assert_close(run(), plainly(run))


def test_a_row_that_has_ended_keeps_its_last_state():
    decoder, values, mask, tokens = setting(CONFIGS["xu"])
    tokens[1, 3:], tokens[2, 4:] = END, PAD
    whole = decoder(tokens, decoder.start(ContextSet(values, mask))).state
    for row, length in enumerate((7, 3, 4)):
        one = ContextSet(values[row : row + 1], mask[row : row + 1])
        alone = decoder(tokens[row : row + 1, :length], decoder.start(one)).state
        torch.testing.assert_close(whole.attended[row], alone.attended[0])
        for ours, expected in zip(whole.recurrent, alone.recurrent, strict=True):
            torch.testing.assert_close(ours[:, row], expected[:, 0])


def test_no_time_is_spent_on_tiles_of_rows_that_have_ended(monkeypatch):
    filled = []
    fill = additive.Scorer.fill
    monkeypatch.setattr(additive, "compiled", lambda _: None)
    monkeypatch.setattr(additive, "TILE", 1)
    monkeypatch.setattr(additive.Scorer, "fill", lambda *a: filled.append(1) or fill(*a))
    decoder, values, mask, tokens = setting(CONFIGS["xu"], each=2)
    tokens[3:, 2:] = PAD
    decoder(tokens, decoder.start(ContextSet(values, mask), per_example=2))
    assert len(filled) == 3 * 7 + 3 * 2


def test_one_step(plainly):
    decoder, *inputs = setting(CONFIGS["xu"], steps=1)
    assert_equal(everything(decoder, *inputs), plainly(lambda: everything(decoder, *inputs)))


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("each", [1, 2])
def test_gradients_of_the_loop_by_finite_differences(each):
    torch.manual_seed(0)
    rows, width, size = 2 * each, 2, 4

    def random(*shape):
        return torch.randn(*shape, dtype=torch.float64, requires_grad=True)

    mask = torch.tensor([[True, True, False], [True, True, True]])
    packing = Packing(torch.tensor([[5, 5, 5], [5, 5, END], [5, END, PAD], [5, 5, 5]])[:rows])
    inputs = (
        random(len(packing.where), 4 * width),
        random(rows, width),
        random(rows, width),
        random(2, 3, size),
        random(2, 3, D),
        random(4 * width + size + 1, width),
        random(size + 1),
        random(4 * width, D),
        random(size),
    )

    def run(projected, h, c, keys, values, weight, bias, from_context, score):
        context = ContextSet(values, mask, keys)
        steps, after = fused.attend_and_advance(
            packing, projected, (h, c), context, (weight, bias), from_context, score
        )
        return steps.hidden, steps.context, steps.weights, *after

    assert torch.autograd.gradcheck(run, inputs, atol=1e-7)


@pytest.mark.parametrize("expected", [[False] * 2 * B, [True, False] * B])
@pytest.mark.parametrize("given", [True, False])
def test_hard_attention_in_the_loop_equals_stepping(expected, given, plainly):
    """The same positions, chosen or drawn with the same seed; α where it is expected."""
    config = DecoderConfig(embedding=6, hidden=7, attention=AttentionConfig(size=6, hard=True))
    decoder, *inputs = setting(config, each=2)
    expected = torch.tensor(expected)
    chosen = torch.randint(0, 2, (2 * B, 6)) if given else None  # two places exist everywhere

    def run():
        torch.manual_seed(1)
        return everything(decoder, *inputs, 2, chosen=chosen, expected=expected)

    ours = run()
    assert_equal(ours, plainly(run))
    assert set(ours[0][2][1].unique().tolist()) == {0.0, 1.0}


def test_a_context_set_used_twice_in_one_graph(plainly):
    decoder, values, mask, tokens = setting(CONFIGS["xu"])

    def run():
        given = values.clone().requires_grad_()
        decoder.zero_grad()
        state = decoder.start(ContextSet(given, mask))
        first = decoder(tokens[:, :3], state)
        second = decoder(tokens[:, 3:5], first.state)  # goes on from there
        again = decoder(tokens[:, 1:4], state)  # and a second reading of the same keys
        (first.readouts.sum() + second.readouts.sin().sum() + again.readouts.cos().sum()).backward()
        return [given.grad, *(p.grad.clone() for p in decoder.parameters() if p.grad is not None)]

    torch.testing.assert_close(run(), plainly(run))


def test_two_readings_in_two_halves_equal_one():
    """Truncated backpropagation carries the state on: the outputs do not notice."""
    decoder, values, mask, tokens = setting(CONFIGS["xu"])
    whole = decoder(tokens, decoder.start(ContextSet(values, mask)))
    first = decoder(tokens[:, :3], decoder.start(ContextSet(values, mask)))
    second = decoder(tokens[:, 3:], first.state.detach())
    torch.testing.assert_close(torch.cat([first.readouts, second.readouts], 1), whole.readouts)


def test_dropout_is_the_same_in_both(plainly):
    decoder, *inputs = setting(DecoderConfig(embedding=6, hidden=7, dropout=0.5))
    decoder.train()

    def run():
        torch.manual_seed(2)
        return everything(decoder, *inputs)

    assert_equal(run(), plainly(run))


def test_nothing_to_see_is_zeros_not_nan():
    decoder, values, mask, tokens = setting(CONFIGS["xu"])
    mask[2] = False
    (_, weights, *_), gradients = everything(decoder, values, mask, tokens)
    assert float(weights[2].abs().max()) == 0
    assert all(bool(torch.isfinite(g).all()) for g in gradients.values())


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_without_gradients_the_outputs_are_the_same(mode, plainly):
    decoder, values, mask, tokens = setting(CONFIGS["xu"], each=2)

    def run():
        with mode():
            state = decoder.start(ContextSet(values, mask), per_example=2)
            decoded = decoder(tokens, state)
            return decoded.readouts, decoded.weights, *decoder.step(tokens[:, 0], state)[:2]

    torch.testing.assert_close(run(), plainly(run))


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("tiles", ["compiled", "all"], indirect=True)
@pytest.mark.parametrize("each", [1, 2])
def test_in_single_precision_at_real_sizes(each, plainly):
    config = DecoderConfig(embedding=128, hidden=256, attention=AttentionConfig(size=512))
    torch.manual_seed(0)
    decoder = Decoder(config, 500, 512)
    mask = torch.arange(196) < torch.randint(60, 197, (6, 1))
    values = torch.randn(6, 196, 512).relu() * mask[..., None]
    tokens = torch.randint(4, 500, (6 * each, 9))
    ours = everything(decoder, values, mask, tokens, each)
    plain = plainly(lambda: everything(decoder, values, mask, tokens, each))
    torch.testing.assert_close(ours[0], plain[0], rtol=1e-4, atol=1e-5)
    for name, gradient in plain[1].items():
        error = (ours[1][name] - gradient).norm() / gradient.norm()
        assert float(error) < 1e-5, name


# ---------------------------------------------------------------------------- compiled or not


def test_this_machine_compiles():
    """Where there is a C compiler, it is used: a mistake in the C file must not go unnoticed."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")
    assert additive.compiled(torch.float32) is not None
    assert additive.compiled(torch.float16) is None


@pytest.mark.parametrize("compiler", ["no-such-compiler", "false", "true"])
def test_without_a_compiler_that_works_there_are_tiles(compiler, monkeypatch):
    """None; one that fails; one that makes nothing."""
    monkeypatch.setenv("CC", compiler)
    additive.compiled.cache_clear()
    try:
        keys = torch.randn(2, 3, 4)
        found = additive.scorer(keys, torch.randn(4), each=1, many=True)
    finally:
        additive.compiled.cache_clear()
    assert isinstance(found, additive.Scorer)


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("tiles", ["compiled", "all"], indirect=True)
def test_what_is_not_a_number_is_not_hidden():
    queries = torch.zeros(2, 4)
    queries[1, 3] = torch.nan
    scorer = additive.scorer(torch.randn(2, 3, 4), torch.randn(4), each=1, many=True)
    assert scorer(queries).isnan().tolist() == [[False] * 3, [True] * 3]


def test_any_number_of_threads_gives_the_same_to_the_last_bit():
    torch.manual_seed(0)
    keys, score, queries = torch.randn(5, 40, 64), torch.randn(64), torch.randn(15, 64)
    d_scores, live = torch.randn(9, 40), torch.tensor([0, 1, 2, 3, 6, 7, 11, 12, 14])
    found = []
    before = torch.get_num_threads()
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        scorer = additive.scorer(keys, score, each=3, many=True)
        backward = scorer.backward()
        given = backward(queries[live], d_scores, live)
        found.append((scorer(queries), given, *backward.finish()))
    torch.set_num_threads(before)
    for other in found[1:]:
        torch.testing.assert_close(other, found[0], rtol=0, atol=0)


# ---------------------------------------------------------------------------- the scores alone


@pytest.mark.usefixtures("tiles")
@pytest.mark.parametrize("each", [1, 3])
def test_scores_and_their_gradients(each):
    torch.manual_seed(0)
    keys = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    queries = torch.randn(2 * each, 4, dtype=torch.float64, requires_grad=True)
    score = torch.randn(4, dtype=torch.float64, requires_grad=True)
    for row, found in enumerate(fused.additive_scores(keys, queries, score)):
        expected = torch.tanh(keys[row // each] + queries[row]) @ score
        torch.testing.assert_close(found, expected)
    assert torch.autograd.gradcheck(fused.additive_scores, (keys, queries, score))


@pytest.mark.parametrize(
    "config",
    [
        DecoderConfig(cell="gru", layers=2, embedding=6, hidden=7),
        DecoderConfig(embedding=6, hidden=7, attention=AttentionConfig(size=5, smoothing=True)),
        DecoderConfig(embedding=6, hidden=7, attention=AttentionConfig(size=5, top_k=2, window=2)),
        DecoderConfig(embedding=6, hidden=7, attention=AttentionConfig(kind="location", size=5)),
    ],
    ids=["gru", "smoothing", "top_k, window", "location"],
)
def test_decoders_outside_the_loop_use_the_same_scores(config, plainly):
    decoder, *inputs = setting(config, each=2)
    ours = everything(decoder, *inputs, 2)
    assert_equal(ours, plainly(lambda: everything(decoder, *inputs, 2)))


def test_an_exported_step_takes_any_number_of_rows():
    """A graph must not have the tiles of the example it was exported with in it."""
    torch.manual_seed(0)

    class Scores(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Decoder(CONFIGS["xu"], V, D).attention

        def forward(self, query, values):
            mask = torch.ones(values.shape[:2], dtype=torch.bool)
            context = self.attention.prepare(ContextSet(values, mask))
            return self.attention.scores(query, context, query)

    scores = Scores()
    rows, places = torch.export.Dim("rows"), torch.export.Dim("places")
    example = torch.randn(3, 7), torch.randn(3, M, D)
    exported = torch.export.export(
        scores, example, dynamic_shapes=({0: rows}, {0: rows, 1: places})
    )
    query, values = torch.randn(6, 7), torch.randn(6, M + 2, D)
    torch.testing.assert_close(exported.module()(query, values), scores(query, values))
