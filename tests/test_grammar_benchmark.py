"""The PCFG of benchmarks.grammar against nltk's Viterbi parser, and its markovised forms."""

import math
import random

import pytest
from benchmarks.grammar import Grammar

from toy_treebank import grow


def trees(count, seed):
    rng = random.Random(seed)
    return [grow(rng) for _ in range(count)]


def test_the_best_tree_is_nltks():
    nltk = pytest.importorskip("nltk")
    known, new = trees(60, 0), trees(12, 1)
    rules = [rule for tree in known for rule in tree.to_nltk().productions()]
    grammar = nltk.induce_pcfg(nltk.Nonterminal("S"), rules)
    prob = {(rule.lhs(), rule.rhs()): rule.logprob() for rule in grammar.productions()}

    def log_prob(tree):
        return sum(prob[rule.lhs(), rule.rhs()] for rule in tree.productions())

    ours, parser = Grammar(known), nltk.ViterbiParser(grammar)
    for tree in new:
        words = [str(leaf.word) for leaf in tree.leaves()]
        if len(words) > 12:
            continue
        found = ours.parse(words).to_nltk()
        assert found.leaves() == words
        # of several trees that are equally likely any will do
        best = max(log_prob(each) for each in parser.parse(words))
        assert math.isclose(log_prob(found), best, rel_tol=1e-9)


@pytest.mark.parametrize(("horizontal", "vertical"), [(0, 1), (1, 2), (2, 3)])
def test_markovised_grammars_give_back_plain_labels(horizontal, vertical):
    known = trees(60, 0)
    grammar = Grammar(known, horizontal, vertical)
    for tree in trees(8, 2):
        found = grammar.parse([str(leaf.word) for leaf in tree.leaves()])
        assert [leaf.word for leaf in found.leaves()] == [leaf.word for leaf in tree.leaves()]
        assert {phrase.label for phrase, _, _ in found.phrases()} <= {"S", "NP", "VP", "PP"}
        assert found.label == "S"


def test_words_that_no_rule_can_join_are_a_flat_tree():
    found = Grammar(trees(20, 0)).parse(["in", "in", "zebra", "sees"])
    assert found.brackets() == "(S (NN in) (NN in) (NN zebra) (NN sees))"
