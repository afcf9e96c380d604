"""The sections that recipes of several tasks share, as frozen dataclasses.

A comment next to or above a field is its entry in `docs/reference/recipe-keys.md`, which
`tools/recipe_keys.py` generates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from sightline.config.reader import Check

CellKind = Literal["rnn", "gru", "lstm"]

Count = Annotated[int, Check(lambda n: n >= 0, "0 or more")]
Positive = Annotated[int, Check(lambda n: n >= 1, "1 or more")]
Layers = Annotated[int, Check(lambda n: 1 <= n <= 100, "from 1 to 100")]
Odd = Annotated[int, Check(lambda n: n >= 1 and n % 2 == 1, "1, 3, 5 …")]
Weight = Annotated[float, Check(lambda x: x >= 0, "0 or more")]
AboveZero = Annotated[float, Check(lambda x: x > 0, "more than 0")]
Share = Annotated[float, Check(lambda x: 0 <= x <= 1, "from 0 to 1")]
BelowOne = Annotated[float, Check(lambda x: 0 <= x < 1, "0 or more and less than 1")]


@dataclass(frozen=True)
class AttentionConfig:
    """How the decoder looks at the context set (PAPERS §2)."""

    kind: Literal["none", "content", "location"] = "content"
    hard: bool = False  # look at one sampled position instead of the weighted sum
    # How hard attention describes: by the expectation over positions, which is ours, or with one
    # choice at every step as Xu et al., the position of the largest weight
    describe: Literal["expectation", "argmax"] = "expectation"
    size: Positive = 512  # A, the width of the tanh layer
    filters: Positive = 10  # location-aware: number of convolution filters
    width: Odd = 31  # location-aware: their width K
    cumulative: bool = False  # location-aware: convolve the sum of all previous weights
    temperature: AboveZero = 1.0  # below 1 sharpens
    top_k: Count = 0  # keep only the k best scores; 0 keeps all
    window: Count = 0  # only positions within this many of the last weights' median; 0 for all
    smoothing: bool = False  # logistic in place of exp


@dataclass(frozen=True)
class DecoderConfig:
    """The decoder of Xu et al., conditional (with a context set) or not."""

    cell: CellKind = "lstm"
    embedding: Positive = 512
    hidden: Positive = 512
    layers: Layers = 1
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    # Where the mean of the context set enters besides attention: the first state (Xu et al.),
    # one step before the first word (Vinyals et al.), every step (Donahue et al.).
    context: tuple[Literal["state", "first", "every"], ...] = ("state",)
    gate: bool = True  # Xu et al.'s β_t
    output: Literal["deep", "plain"] = "deep"  # eq. 7, or straight from h_t
    # What a readout becomes: a token of a vocabulary, a position of the context set (Vinyals et
    # al. 2015; `attention` is then an extra glimpse before each step, "none" in that paper), one
    # class, or a token of a vocabulary that may be copied from a position that names it
    head: Literal["vocabulary", "pointer", "class", "copy"] = "vocabulary"
    dropout: BelowOne = 0.0
    sampled_softmax: Count = 0  # negatives per batch in training; 0 uses the whole vocabulary
    tied: bool = False  # the output layer's matrix is the embedding's


@dataclass(frozen=True)
class ImageEncoderConfig:
    """A convolutional network that reads pictures (`nn/encoders/image.py`)."""

    name: str = "efficientnet_lite2"
    # A file, package:NAME, hub:NAME or a run that trained its encoder; `default`: as published;
    # `initial`: that of `training.initial`, which then stays part of the model
    weights: str = "default"
    # Of the feature map, 16 or 32; 0: one vector, VGG's FC-4096 (of a whole weight file) or the
    # mean of another network's last map; null: the network's usual one
    stride: int | None = None
    size: Positive | None = None  # of the input in pixels; null: the network's usual one
    # How a picture is made square: the middle of it, or all of it; null: the network's usual way
    mode: Literal["crop", "squeeze"] | None = None
    # What is trained with the decoder: nothing, the layers above the map of stride 16, everything,
    # or everything from random weights
    learning: Literal["frozen", "upper", "tuned", "scratch"] = "frozen"
    mirror: bool = False  # in training, flip half of the pictures left to right
    # So many likely words follow the picture's vectors in the context set; 0: none. They are
    # ImageNet's classes and the commonest `tag_words` of the captions
    tags: Count = 0
    tag_words: Count = 1000


@dataclass(frozen=True)
class GlimpseConfig:
    """An encoder whose cost does not grow with the picture (`nn/encoders/glimpses.py`)."""

    coarse: Positive = 384  # pixels on the long side of the first look
    glimpses: Positive = 6  # at full resolution
    side: Positive = 96  # of a glimpse in the picture's pixels
    apart: Positive = 48  # pixels between the centres of two glimpses, at least
    dimension: Positive = 128  # D
    # In training the first look is as coarse as that of pictures up to so many pixels on a side
    largest: Positive = 12000
    explore: Weight = 1.0  # in training: how much chance there is in where glimpses go


@dataclass(frozen=True)
class SearchConfig:
    """The beam search of evaluation, and the default of `describe` and `translate`."""

    beam: Positive = 5
    max_length: Positive = 30
    min_length: Count = 0
    length_penalty: float = 0.0
    no_repeat: Count = 0  # no n-gram of this length is written twice; 0 allows all
    words_once: bool = False  # no content word is written twice (by English function words)
    # How much likelier, in nats, a word becomes that the encoder's ImageNet classifier is sure of
    # (encoder.tags), until it is written; 0: not at all
    naming: Weight = 0.0
    sure: Share = 0.3  # the probability from which the classifier counts as sure
    sure_of_things: Share = 0.3  # the same of what is no animal: a photo has many things
    common: Count = 500  # so many of the commonest words are left to the decoder


@dataclass(frozen=True)
class RecurrentConfig:
    """A recurrent encoder of a sequence."""

    cell: CellKind = "gru"
    embedding: Positive = 256
    hidden: Positive = 256
    layers: Layers = 1
    bidirectional: bool = True
    summary: bool = False  # one vector, the last state: an encoder-decoder without attention
    dropout: BelowOne = 0.0
    reversed: bool = False  # read from the last token to the first (Sutskever et al. 2014)
    word_dropout: BelowOne = 0.0  # in training, this share of tokens is unknown
    spelling: bool = False  # also read each word's endings, beginning and shape


@dataclass(frozen=True)
class PointEncoderConfig(RecurrentConfig):
    """An encoder of points: a recurrent one, which reads them in order, or one of a set."""

    # set: `layers` of self-attention of `hidden` numbers, to which the order of points is nothing;
    # of the keys above it has these two and `dropout`
    kind: Literal["recurrent", "set"] = "recurrent"
    heads: Positive = 8  # of a set's attention


@dataclass(frozen=True)
class SoundEncoderConfig:
    """A stack of recurrent layers over the frames of a sound (`nn/encoders/sound.py`)."""

    cell: CellKind = "gru"
    hidden: Positive = 192  # in each direction
    # How many neighbours are put together below each layer, so that there are fewer positions
    # towards the top: three layers, and a position for every 2 · 2 frames
    together: tuple[Positive, ...] = (2, 2, 1)
    bidirectional: bool = True
    summary: bool = False  # one vector, the last states: an encoder-decoder without attention
    dropout: BelowOne = 0.0


@dataclass(frozen=True)
class SoundAugmentConfig:
    """How sounds are changed in training, drawn again each time (`data/augment.py`)."""

    time_masks: Count = 0  # SpecAugment (Park et al. 2019): stretches of silence
    longest_mask: Positive = 30  # frames of one, at most
    band_masks: Count = 0  # SpecAugment: ranges of filter banks that are left out
    widest_mask: Positive = 8  # filter banks of one, at most
    speed: BelowOne = 0.0  # up to this share faster or slower
    tract: BelowOne = 0.0  # pitch and formants up to this share higher or lower


@dataclass(frozen=True)
class MemoryConfig:
    """An end-to-end memory network (Sukhbaatar et al. 2015): facts read in hops."""

    size: Positive = 20  # d, of a fact's vector
    hops: Layers = 3
    # A hop's output vectors are the next one's keys, and the last ones the answers'; or all hops
    # share theirs, with a matrix between them
    tying: Literal["adjacent", "layerwise"] = "adjacent"
    encoding: Literal["words", "positions"] = "positions"  # a bag of words, or by their places
    # What was read replaces as much of the state as a gate says that sees the state, instead of
    # being added to it (Liu and Perez 2017): so an answer can depend on whether two things agree
    gate: bool = False
    temporal: bool = True  # the age of a fact counts
    memory: Positive = 50  # so many of the latest facts are read
    longest: Positive = 12  # words of a sentence
    # Each hop reads one fact, the one of the largest weight (Weston et al. 2015). In training it is
    # the one that supports the answer, where the manifest's meta names it: needs `loss.looks`
    hard: bool = False
    noise: BelowOne = 0.1  # in training, so many empty facts are put between the others, as a share
    linear_start: BelowOne = 0.0  # for this share of training, attention is without its softmax


@dataclass(frozen=True)
class VocabularyConfig:
    """The tokens of one language (`data/vocabulary.py`)."""

    kind: Literal["word", "char", "bpe"] = "bpe"
    size: Positive = 8000  # at most this many tokens
    min_count: Positive = 1  # tokens (BPE: merges) that occur less often are left out


@dataclass(frozen=True)
class HardConfig:
    """The hard-attention objective (Xu et al. §4.1)."""

    samples: Positive = 1  # N
    reward: Weight = 1.0  # λ_r
    entropy: Weight = 0.002  # λ_e
    baseline: bool = True
    normalise: bool = False  # divide what exceeds the baseline by its deviation, where above 1
    decay: BelowOne = 0.9  # of the moving averages
    expectation: Share = 0.5  # probability, per picture, of using α in place of the sample


@dataclass(frozen=True)
class LossConfig:
    """What is minimised."""

    label_smoothing: BelowOne = 0.0
    doubly_stochastic: Weight = 0.0  # λ of Xu et al. eq. 14
    tags: Weight = 0.0  # how much the detection of the targets' words counts (encoder.tags)
    # the share of examples in which a tag and its word in the targets become another word, for the
    # model to learn to copy words that it has never written
    rename: Share = 0.0
    # How much looking where it should counts (Chen et al. 2016, guided alignment), in tasks that
    # know where: a parser's next word, the facts that support an answer
    looks: Weight = 0.0
    # How much a CTC loss on the encoder's positions counts (Watanabe et al. 2017), of sounds
    ctc: Weight = 0.0
    # the share of batches in which only CTC is learned, which costs half as much: the encoder is
    # what takes long to learn
    ctc_alone: Share = 0.0
    hard: HardConfig = field(default_factory=HardConfig)
    per: Literal["token", "sequence"] = "token"  # what the loss is divided by


@dataclass(frozen=True)
class OptimiserConfig:
    """The optimiser and its step size."""

    kind: Literal["sgd", "adagrad", "adadelta", "rmsprop", "adam", "adamw"] = "adam"
    learning_rate: Weight = 1e-3
    momentum: BelowOne = 0.0  # sgd and rmsprop
    betas: tuple[BelowOne, BelowOne] = (0.9, 0.999)  # adam and adamw
    rho: BelowOne = 0.95  # adadelta's and rmsprop's decay
    weight_decay: Weight = 0.0
    clip_norm: Weight = 5.0  # of the whole gradient; 0: no clipping
    clip_value: Weight = 0.0  # each number of the gradient is cut to ± this; 0: no clipping
    encoder: Weight = 1.0  # the encoder's learning rate as a factor of the decoder's


@dataclass(frozen=True)
class ScheduleConfig:
    """The learning rate over time, as a factor of `optimiser.learning_rate`."""

    kind: Literal["constant", "linear", "cosine", "exponential", "inverse_sqrt"] = "constant"
    warmup: Count = 0  # steps over which the factor rises from 0 to 1
    final: Weight = 0.0  # linear and cosine end at this factor; exponential reaches it


@dataclass(frozen=True)
class DataConfig:
    """One of several data sets that are trained on together."""

    path: str  # a manifest
    weight: AboveZero = 1.0  # how often each of its training examples occurs in an epoch


Manifest = str | tuple[str | DataConfig, ...]  # one data set, or several


@dataclass(frozen=True)
class TrustConfig:
    """How much a target counts in the loss, by its origin in the manifest; 0 leaves it out."""

    human: Weight = 1.0
    machine: Weight = 1.0  # written by another model
    derived: Weight = 1.0  # made from other annotations by rule


@dataclass(frozen=True)
class BatchingConfig:
    """How sequences are grouped into minibatches (`data/batching.py`)."""

    kind: Literal["same_length", "similar_length", "token_budget"] = "same_length"
    size: Positive = 64  # sequences; with token_budget, padded tokens


@dataclass(frozen=True)
class TrainingConfig:
    """The training loop."""

    steps: Positive = 10_000
    seed: Count = 1
    initial: str | None = None  # a model of the same recipe whose weights training starts from
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    # The share of previous words that the model samples itself at the last step; grows from 0
    scheduled_sampling: BelowOne = 0.0
    ema: BelowOne = 0.0  # decay of the averaged weights that are evaluated and saved; 0: none
    evaluate_every: Positive = 500
    save_every: Count = 0  # steps between extra checkpoints; 0: none
    keep: Positive = 2  # newest checkpoints kept in addition to the best one
    select: str = "loss"  # the metric that chooses the best checkpoint
    patience: Count = 0  # stop after this many evaluations without a better one; 0: never
    explode: AboveZero = 5.0  # stop when the loss exceeds this many times its first value
    tensorboard: bool = True
    # A batch is computed in at least so many parts, whose gradients are added up: less memory. Of
    # several processes (torchrun) each takes its share of them
    accumulate: Positive = 1
    device: str = "auto"  # auto, cpu, cuda, cuda:1 …
    # bfloat16: products of matrices round their factors, and take half the time where the
    # processor knows that type; weights and sums stay in 32 bits
    precision: Literal["float32", "bfloat16"] = "float32"
