"""Tags: words that a picture may be about, read off its vectors, as further context positions.

Two classifiers look at the mean of a picture's vectors: ImageNet's own, which knows penguins and
pianos that hardly occur in captions, and a detector of the captions' words (Fang et al. 2015). The
likeliest words follow the grid in the context set: attended like its cells, and the head may copy
them (`heads.CopyHead`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sightline.data.imagenet import CLASSES, imagenet_words
from sightline.data.vocabulary import PAD, Vocabulary
from sightline.types import ContextSet

KEEP = 10.0  # how much ImageNet's classes count beside the words, of which there are many


class Tagger(nn.Module):
    """The `count` likeliest words for each picture, with their vectors.

    A word's vector is its row of a classifier, of length √D, for rows and pictures share a space:
    what is learnt of dogs serves for wolves, which no caption named.
    """

    tokens: Tensor  # (U,): the token of each word
    word_of: Tensor  # (1000,): which of them a class has; U where it has none
    table: Tensor | None  # (U, D): `rows`, where it is used without learning

    def __init__(
        self, dimension: int, vocab: Vocabulary, common: Sequence[int], count: int
    ) -> None:
        """Words are ImageNet's and the `common` tokens."""
        super().__init__()
        named = {vocab.ids[w]: c for w, c in imagenet_words().items() if w in vocab.ids}
        tokens = sorted({*common, *named})
        word_of = torch.full((CLASSES,), len(tokens))
        for number, token in enumerate(tokens):
            word_of[named.get(token, [])] = number
        self.count = count
        self.register_buffer("table", None, persistent=False)
        self.classes = nn.Linear(dimension, CLASSES)
        self.words = nn.Linear(dimension, len(tokens))
        nn.init.constant_(self.words.bias, -4.0)  # most words are not in most captions
        self.sure = nn.Parameter(torch.zeros(dimension))  # how likely the word is enters by this
        self.kind = nn.Parameter(torch.zeros(dimension))  # a tag, not a cell
        # they follow from vocabulary and recipe, and are no weights
        self.register_buffer("tokens", torch.tensor(tokens), persistent=False)
        self.register_buffer("word_of", word_of, persistent=False)

    def scores(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of ImageNet's classes (B, 1000) and of the captions' words (B, U)."""
        mean = vectors.mean(1)  # (B, D)
        return self.classes(mean), self.words(mean)

    def likely(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """How likely each word is, by the surer classifier and by that of ImageNet, (B, U)."""
        classes, words = self.scores(vectors)
        # not len(): a traced graph takes any number of pictures
        by_class = words.new_zeros(words.shape[0], len(self.tokens) + 1)
        word_of = self.word_of.expand(words.shape[0], -1)
        by_class = by_class.scatter_add(1, word_of, classes.softmax(1))[:, :-1]
        return torch.maximum(by_class, words.sigmoid()), by_class

    def rows(self) -> Tensor:
        """The words' vectors, (U, D)."""
        by_class = self.words.weight.new_zeros(len(self.tokens) + 1, self.words.in_features)
        by_class = by_class.index_add(0, self.word_of, self.classes.weight)[:-1]
        has_class = torch.isin(torch.arange(len(self.tokens)), self.word_of)[:, None]
        rows = torch.where(has_class, by_class, self.words.weight)
        return F.normalize(rows, dim=1) * math.sqrt(rows.shape[1])

    def for_inference(self) -> Tagger:
        """A copy that has the words' vectors ready."""
        twin = copy.deepcopy(self)
        del twin.table
        twin.register_buffer("table", self.rows().detach())  # a weight, for the tracer of exports
        return twin

    def forward(self, context: ContextSet) -> ContextSet:
        """The context set with the tags behind its own positions."""
        # only `tag_loss` teaches the classifiers
        with torch.no_grad():
            likely, by_class = self.likely(context.values.detach())
            likely, which = likely.topk(self.count, 1)
        rows = self.rows().detach() if self.table is None else self.table  # (U, D)
        values = rows[which] + likely[..., None] * self.sure + self.kind
        tokens = self.tokens[which]
        cells = torch.zeros_like(context.mask, dtype=tokens.dtype)
        sure = by_class.gather(1, which)
        return ContextSet(
            torch.cat([context.values, values], 1),
            torch.cat([context.mask, torch.ones_like(tokens, dtype=torch.bool)], 1),
            tokens=torch.cat([cells, tokens], 1),
            sure=torch.cat([cells.to(sure.dtype), sure], 1),
        )


def tag_loss(
    tagger: Tagger,
    vectors: Tensor,  # (B, M, D)
    targets: Tensor,  # (N, T): the captions' tokens, N = B · K
    published: Tensor | None = None,  # (B, 1000): the classifier's logits before it learned
) -> Tensor:
    """Binary cross-entropy of the captions' words, and that of ImageNet's classes to keep.

    The second is learning without forgetting (Li and Hoiem 2016): the encoder that learns must
    still tell the classes that its published weights told.
    """
    classes, words = tagger.scores(vectors)
    written = targets.view(len(vectors), -1)  # (B, K · T)
    present = (written[:, :, None] == tagger.tokens).any(1).to(words.dtype)
    loss = F.binary_cross_entropy_with_logits(words, present, reduction="sum") / len(vectors)
    if published is not None:
        kept = -(published.softmax(1) * classes.log_softmax(1)).sum(1).mean()
        loss = loss + KEEP * kept
    return loss


def renamed(
    tokens: Tensor,  # (B, M): what positions stand for
    targets: Tensor,  # (N, T), N = B · K
    words: Tensor,  # (U,): those that tags can stand for
    share: float,
) -> tuple[Tensor, Tensor]:
    """One tag of this share of examples, and its word in their targets, become a random word.

    The vocabulary cannot know that word, so the head has to copy it: by the tag's vector, as it
    will have to for a word that no caption has.
    """
    tokens, targets = tokens.clone(), targets.clone()
    of_example = targets.view(len(tokens), -1)  # (B, K · T), the same memory
    for number in (torch.rand(len(tokens)) < share).nonzero()[:, 0].tolist():
        row, written = tokens[number], of_example[number]
        found = (torch.isin(row, written) & (row != PAD)).nonzero()[:, 0]
        if not len(found):
            continue
        word = row[found[int(torch.randint(len(found), ()))]].clone()
        other = words[int(torch.randint(len(words), ()))]
        if bool((row == other).any()) or bool((written == other).any()):
            continue
        row[row == word] = other
        written[written == word] = other
    return tokens, targets
