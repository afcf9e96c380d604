"""Hostile model folders: each case takes a sound export and makes one thing of it hostile."""

import hashlib
import json
import os
import socket

import onnx
from onnx import TensorProto, helper

from sightline.runtime.model_folder import EXPORT

STEP = "step.onnx"
SECRET = "the-secret-that-nobody-may-read"
CASES = {}


def case(name):
    def add(function):
        assert name not in CASES
        CASES[name] = function
        return function

    return add


def change(folder, name, content):
    """Replace a file and keep its hash right, as an attacker would."""
    (folder / name).write_bytes(content)
    listed(folder, **{name: hashlib.sha256(content).hexdigest()})


def about(folder, **changes):
    path = folder / EXPORT
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def listed(folder, **files):
    about(folder, files={**json.loads((folder / EXPORT).read_text())["files"], **files})


# ------------------------------------------------------------------------------- protobuf


def varint(number):
    parts = []
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def field(number, payload):
    """A field of bytes."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def whole(model, graph):
    """A model's bytes with these bytes as its graph."""
    rest = onnx.ModelProto()
    rest.CopyFrom(model)
    rest.ClearField("graph")
    return rest.SerializeToString() + field(7, graph)


ATTRIBUTE = helper.make_attribute("axis", 1).SerializeToString()
NODE = helper.make_node("Identity", ["tokens"], ["hostile"]).SerializeToString()
TENSOR = helper.make_tensor("hostile", TensorProto.FLOAT, [1], [1.0])
TENSOR = onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(TENSOR), "hostile")
VALUE = helper.make_tensor_value_info("hostile", TensorProto.FLOAT, [1])
# A message of each kind with bytes added inside it: model → what is in the file
PLACES = {
    "model": lambda model, extra: model.SerializeToString() + extra,
    "graph": lambda model, extra: whole(model, model.graph.SerializeToString() + extra),
    "node": lambda model, extra: in_graph(model, 1, NODE + extra),
    "attribute": lambda model, extra: in_graph(
        model, 1, helper.make_node("Softmax", ["a"], ["b"]).SerializeToString()
        + field(5, ATTRIBUTE + extra),
    ),
    "tensor": lambda model, extra: in_graph(model, 5, TENSOR.SerializeToString() + extra),
    "tensor in an attribute": lambda model, extra: in_graph(
        model, 1, helper.make_node("Constant", [], ["b"]).SerializeToString()
        + field(5, helper.make_attribute("value", 1).SerializeToString()
                + field(5, TENSOR.SerializeToString() + extra)),
    ),
    "value": lambda model, extra: in_graph(model, 11, VALUE.SerializeToString() + extra),
    "opset": lambda model, extra: model.SerializeToString() + field(8, extra),
}  # fmt: skip


def in_graph(model, number, payload):
    return whole(model, model.graph.SerializeToString() + field(number, payload))


def graph_case(name, make):
    """make(model) gives bytes, or changes the model."""

    def run(folder):
        model = onnx.load_from_string((folder / STEP).read_bytes())
        content = make(model)
        change(folder, STEP, content if isinstance(content, bytes) else model.SerializeToString())

    case(name)(run)


LOCATION = field(13, field(1, b"location") + field(2, b"secret"))
ENCODINGS = {
    "an unknown field": varint(99 << 3 | 2) + b"\x01x",
    "an unknown number": varint(2000 << 3) + b"\x01",
    "an over-long tag": b"\xea\x80\x00\x01x",  # of field 13, bytes
    "an over-long length": varint(99 << 3 | 2) + b"\x81\x00x",
    "a field number of 0": b"\x02\x01x",
    "a group": varint(99 << 3 | 3) + varint(99 << 3 | 4),
    "a tag beyond 32 bits": b"\xea\x80\x80\x80\x80\x80\x01\x01x",
}
for _place, _make in PLACES.items():
    for _name, _extra in ENCODINGS.items():
        graph_case(f"{_name} in a {_place}", lambda m, make=_make, extra=_extra: make(m, extra))
for _place in ("tensor", "tensor in an attribute"):
    _make = PLACES[_place]
    for _name, _extra in {
        "outside data": LOCATION + b"\x70\x01",
        "outside data with an over-long tag": b"\xea\x80\x00" + LOCATION[1:] + b"\x70\x01",
        "a data location alone": b"\x70\x01",
        "a second shape": b"\x08\x7f",
        "two kinds of data": field(4, b"\0\0\0\0"),
        "strings": field(6, b"x"),
        "a second type": b"\x10\x08",
    }.items():
        graph_case(f"{_name} of a {_place}", lambda m, make=_make, extra=_extra: make(m, extra))
for _name, _content in {
    "no bytes": b"", "one byte": b"\x0a", "a number without end": b"\xff" * 30,
    "a ZIP file": b"PK\x03\x04" + bytes(40), "a length beyond the end": b"\x3a\xff\xff\xff\xff\x07",
    "a pickle": b"\x80\x04cos\nsystem\n(S'touch executed'\ntR.",
}.items():  # fmt: skip
    graph_case(f"{_name} as a graph", lambda m, content=_content: content)


# -------------------------------------------------------------------- operators and attributes

OPERATORS = (
    "Loop", "Scan", "If", "SequenceMap", "SequenceAt", "Optional", "StringNormalizer", "Tile",
    "StringConcat", "RegexFullMatch", "TfIdfVectorizer", "ImageDecoder", "RandomNormal",
    "Bernoulli", "Multinomial", "Einsum", "Resize", "EyeLike", "PyOp", "LoadModel", "", "add",
    "Add\x1b[31m", "A" * 5000,
)  # fmt: skip
for _operator in OPERATORS:
    graph_case(
        f"the operator {_operator[:20]!r}",
        lambda m, name=_operator: m.graph.node.append(helper.make_node(name, ["tokens"], ["y"])),
    )


def first_node(model, **attributes):
    for name, value in attributes.items():
        model.graph.node[0].attribute.append(helper.make_attribute(name, value))


INNER = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [], [])
SPARSE = helper.make_sparse_tensor(
    TENSOR, onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(TENSOR).astype("int64")), [5]
)
for _name, _value in {
    "body": INNER, "then_branch": INNER, "branches": [INNER], "sparse_value": SPARSE,
    "sparse_values": [SPARSE], "value_string": "x", "\x1b[2J": 1, "library": "/tmp/x.so",
}.items():  # fmt: skip
    graph_case(f"the attribute {_name!r}", lambda m, k=_name, v=_value: first_node(m, **{k: v}))


@case("an endless loop")
def _(folder):
    go = helper.make_node("Identity", ["more"], ["again"])
    more = helper.make_tensor_value_info("more", TensorProto.BOOL, [])
    number = helper.make_tensor_value_info("number", TensorProto.INT64, [])
    again = helper.make_tensor_value_info("again", TensorProto.BOOL, [])
    body = helper.make_graph([go], "body", [number, more], [again])
    model = onnx.load_from_string((folder / STEP).read_bytes())
    model.graph.node.append(helper.make_node("Loop", ["", "tokens"], [], body=body))
    change(folder, STEP, model.SerializeToString())


def big(dims, kind=TensorProto.FLOAT, raw=b""):
    return TensorProto(name="hostile", data_type=kind, dims=dims, raw_data=raw)


for _name, _tensor in {
    "a terabyte": big([1 << 40]), "sizes that overflow": big([1 << 62, 4]),
    "a negative size": big([-1], raw=b"\0\0\0\0"), "no type": big([], 0),
    "text": big([1], TensorProto.STRING), "half precision": big([1], TensorProto.FLOAT16, b"\0\0"),
}.items():  # fmt: skip
    graph_case(f"a tensor of {_name}", lambda m, tensor=_tensor: m.graph.initializer.append(tensor))
graph_case("30,000 operations", lambda m: in_graph(m, 1, NODE) + field(7, field(1, NODE) * 30_000))
graph_case(
    "many operations", lambda m: whole(m, m.graph.SerializeToString() + field(1, NODE) * 30_000)
)
graph_case("many strings", lambda m: in_graph(m, 1, NODE + field(1, b"x") * 600_000))
graph_case("two graphs", lambda m: m.SerializeToString() + field(7, m.graph.SerializeToString()))
graph_case("an operator given twice", lambda m: in_graph(m, 1, NODE + field(4, b"Add")))
graph_case("another domain", lambda m: setattr(m.graph.node[0], "domain", "com.example"))
graph_case("onnxruntime's domain", lambda m: setattr(m.graph.node[0], "domain", "com.microsoft"))
graph_case(
    "an opset of another domain", lambda m: m.opset_import.append(helper.make_opsetid("x", 1))
)
graph_case("an opset of the future", lambda m: setattr(m.opset_import[0], "version", 9999))
graph_case("metadata", lambda m: m.metadata_props.add(key="x", value="y"))
graph_case("sparse weights", lambda m: m.graph.sparse_initializer.append(SPARSE))
graph_case("a description", lambda m: setattr(m, "doc_string", "\x1b[2J"))
graph_case("a training program", lambda m: m.training_info.add())
graph_case("an input that nobody gives", lambda m: m.graph.input.append(VALUE))
graph_case("a missing output", lambda m: m.graph.output.pop())
graph_case("a cycle", lambda m: m.graph.node.append(helper.make_node("Identity", ["z"], ["z"])))
graph_case("a name with an escape code", lambda m: m.graph.node.append(
    helper.make_node("Identity", ["\x1b]0;owned\x07"], ["\x1b[2J"])))  # fmt: skip


# ------------------------------------------------------------------------------- the folder


@case("a link to a file elsewhere")
def _(folder):
    (folder.parent / "elsewhere").write_bytes((folder / "vocab.json").read_bytes())
    (folder / "vocab.json").unlink()
    os.symlink(folder.parent / "elsewhere", folder / "vocab.json")


@case("a link within the folder")
def _(folder):
    (folder / STEP).rename(folder / "graph")
    os.symlink("graph", folder / STEP)


@case("an unlisted link")
def _(folder):
    os.symlink("/etc/passwd", folder / "lexicon.json")


@case("a link for the list")
def _(folder):
    (folder / EXPORT).rename(folder.parent / "list")
    os.symlink("../list", folder / EXPORT)


for _file in (EXPORT, STEP, "vocab.json", "config.yaml", "lexicon.json", "other"):

    @case(f"a FIFO: {_file}")
    def _(folder, name=_file):
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)


@case("a socket")
def _(folder):
    (folder / "vocab.json").unlink()
    before = os.getcwd()
    os.chdir(folder)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("vocab.json")
    os.chdir(before)


@case("a folder for a file")
def _(folder):
    (folder / "vocab.json").unlink()
    (folder / "vocab.json").mkdir()


for _file in ("vocab.json", EXPORT, STEP, "config.yaml"):

    @case(f"a sparse file of 3 GB: {_file}")
    def _(folder, name=_file):
        os.truncate(folder / name, 3 << 30)


for _file in ("lexicon.json", "more.onnx", "language_model.yaml"):

    @case(f"a file without a hash: {_file}")
    def _(folder, name=_file):
        (folder / name).write_text("{}")


for _path in ("../secret", "/etc/passwd", "..", ".", "", "a\\b.json", "a\0.json", "\x1b[2J.json",
              "secret", "sub/x.json", "x" * 5000 + ".json", "missing.json"):  # fmt: skip

    @case(f"a list that names {_path[:20]!r}")
    def _(folder, name=_path):
        listed(folder, **{name: hashlib.sha256(SECRET.encode()).hexdigest()})


for _name, _content in {
    "nothing": b"", "no object": b"[]", "deep nesting": b"[" * 200_000, "no text": b"\xff\xfe\0",
    "a long number": b'{"format": ' + b"9" * 100_000 + b"}", "null": b"null",
    "a list of files": b'{"format": 2, "files": ["step.onnx"]}', "NaN": b'{"format": NaN}',
    "a true format": b'{"format": true, "files": {}}',
}.items():  # fmt: skip

    @case(f"a list of {_name}")
    def _(folder, content=_content):
        (folder / EXPORT).write_bytes(content)


@case("hashes that are no text")
def _(folder):
    listed(folder, **{STEP: ["x"]})


@case("another task")
def _(folder):
    about(folder, task="caption")


TOKENS = ["<pad>", "<begin>", "<end>", "<unk>"]
for _name, _content in {
    "deep nesting": b"[" * 200_000, "no object": b"7", "no tokens": b"{}",
    "numbers": json.dumps({"kind": "char", "tokens": [*TOKENS, 7], "merges": []}).encode(),
    "one token twice": json.dumps(
        {"kind": "char", "tokens": [*TOKENS, "a", "a"], "merges": []}).encode(),
    "too few tokens": json.dumps({"kind": "char", "tokens": TOKENS, "merges": []}).encode(),
    "an object of tokens": b'{"kind": "char", "tokens": {"a": 1}, "merges": []}',
    "another kind": json.dumps({"kind": "\x1b[2J", "tokens": TOKENS, "merges": []}).encode(),
    "odd merges": json.dumps({"kind": "bpe", "tokens": TOKENS, "merges": [[[], {}]]}).encode(),
}.items():  # fmt: skip

    @case(f"a vocabulary of {_name}")
    def _(folder, content=_content):
        change(folder, "vocab.json", content)


for _name, _text in {
    "Python objects": "!!python/object/apply:os.system ['touch executed']",
    "an unknown task": "task: \x01evil", "another task": "task: ../../evil", "nothing": "",
    "no mapping": "- 1", "deep nesting": "[" * 5000,
}.items():  # fmt: skip

    @case(f"a recipe of {_name}")
    def _(folder, text=_text):
        change(folder, "config.yaml", text.encode())
