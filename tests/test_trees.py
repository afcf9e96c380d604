"""Trees in brackets and linearised; cutting sentences into words; the treebank converter."""

import json
import zipfile

import pytest

from sightline.data.converters.treebanks import treebank
from sightline.data.trees import build, read_trees, without_traces, words_of
from sightline.errors import DataError

JOHN = "(S (NP (NNP John)) (VP (VBZ has) (NP (DT a) (NN dog))) (. .))"


def test_a_tree_is_linearised_as_the_lecture_writes_it():
    (tree,) = read_trees(JOHN)
    assert " ".join(tree.tokens()) == "(S (NP NNP )NP (VP VBZ (NP DT NN )NP )VP . )S"
    assert " ".join(tree.tokens(tags=False)) == "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"
    words = [leaf.word for leaf in tree.leaves()]
    assert words == ["John", "has", "a", "dog", "."]
    assert build(tree.tokens(), words) == tree
    assert tree.brackets() == JOHN
    assert [(p.label, a, b) for p, a, b in tree.phrases()] == [
        ("S", 0, 5), ("NP", 0, 1), ("VP", 1, 4), ("NP", 2, 4),
    ]  # fmt: skip


def test_a_built_tree_knows_its_steps():
    tree = build(["(S", "(NP", "NNP", ")NP", ")S"], ["John"])
    assert tree.steps == (0, 4)
    assert tree.children[0].steps == (1, 3)
    assert tree.children[0].children[0].steps == (2,)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ([], "(TOP (? a) (? b))"),
        (["(S"], "(S (? a) (? b))"),
        (["(S", "(NP", "DT"], "(S (NP (DT a) (? b)))"),
        (["(S", "DT", ")S"], "(TOP (S (DT a)) (? b))"),
        (["(S", "DT", "NN", ")S", ")S", "NN"], "(S (DT a) (NN b))"),
    ],
)
def test_partial_outputs_are_trees_too(tokens, text):
    assert build(tokens, ["a", "b"]).brackets() == text


def test_traces_and_functions_go():
    text = "( (S (NP-SBJ-1 (NNS Dogs)) (VP (VBP run) (S (NP-SBJ (-NONE- *-1)))) (. .)) )"
    (tree,) = read_trees(text)
    assert without_traces(tree).brackets() == "(S (NP (NNS Dogs)) (VP (VBP run)) (. .))"
    (tree,) = read_trees("( (X (-NONE- *)))")
    assert without_traces(tree) is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(S (NP (NN a))", "tree 1 is not closed"),
        ("(S (NN a)) )", "tree 2 has a closing bracket too many"),
        ("a (S (NN a))", "outside of all brackets"),
        ("(S (NP a b c))", "a word is"),
        ("(S (NN a) b)", "a word is"),
        ("(S ())", "a word is"),
        ("(S b c (NN a))", "a word needs a tag"),
    ],
)
def test_broken_brackets_are_explained(text, problem):
    with pytest.raises(DataError, match=problem):
        read_trees(text, "here")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("John has a dog.", "John has a dog ."),
        ('He said: "Don\'t go (yet), it\'s 1,200 dollars!"',
         "He said : `` Do n't go -LRB- yet -RRB- , it 's 1,200 dollars ! ''"),
        ("U.S. sales rose 3.5% to $4 in Nov. at AT&T.",
         "U.S. sales rose 3.5 % to $ 4 in Nov. at AT&T ."),
        ("They cannot say the dogs' names.", "They can not say the dogs ' names ."),
        ("a , b U.S. .", "a , b U.S. ."),
        ("", ""),
        ("   ", ""),
    ],
)  # fmt: skip
def test_words_are_cut_as_the_treebank_cuts_them(text, words):
    assert words_of(text) == words.split()
    assert words_of(words) == words.split()  # cutting twice changes nothing


def test_the_penn_sample_is_read_whole(shared_data):
    found = treebank(shared_data / "treebank/treebank.zip")
    assert not found.notes
    assert found.summary() == "3,914 items with 3,914 texts (train 3,396, dev 273, test 245)"


def test_a_folder_a_zip_and_lines_are_read(tmp_path):
    folder = tmp_path / "combined"
    folder.mkdir()
    for number in (1, 160, 180):
        (folder / f"wsj_{number:04}.mrg").write_text(f"( {JOHN} )\n( (X (-NONE- *)) )\n")
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"treebank/combined/{file.name}")
    for path in (folder, tmp_path / "t.zip"):
        found = treebank(path)
        assert [e.split for e in found.examples] == ["train", "dev", "test"]
        assert found.examples[0].targets == (JOHN,)
        assert found.examples[0].source == "John has a dog ."
        assert "3 left out" in found.notes[0]
    lines = tmp_path / "more.ptb"
    lines.write_text(f"train\t(ROOT {JOHN})\ndev\t{JOHN}\n")
    found = treebank(lines, "machine")
    assert [e.id for e in found.examples] == ["more-1", "more-2"]
    assert found.examples[0].origins == ("machine",)
    lines.write_text(f"train {JOHN}\n")
    with pytest.raises(DataError, match=r"more.ptb:1"):
        treebank(lines)
    for wrong in (tmp_path / "none.zip", tmp_path / "none.ptb", tmp_path):
        with pytest.raises(DataError):
            treebank(wrong if wrong != tmp_path else tmp_path / "combined" / "none")


def test_trees_become_json_and_nltk():
    (tree,) = read_trees(JOHN)
    assert json.loads(json.dumps(tree.to_json()))["children"][0]["label"] == "NP"
    nltk = pytest.importorskip("nltk")
    assert tree.to_nltk() == nltk.Tree.fromstring(JOHN)
    assert nltk.Tree.fromstring(tree.pretty()) == nltk.Tree.fromstring(JOHN)
