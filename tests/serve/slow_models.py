"""Exports whose graphs take minutes, made of nothing but operators that exports may have."""

import hashlib
import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from sightline.export.write import export
from sightline.runtime.model_folder import EXPORT, STEP
from small_models import save_translator


def slow_translator(folder, nodes, side):
    """A step multiplies `nodes` matrices one by one, of `side` rows and columns for each hypothesis
    of the beam: a small beam is quick."""
    export(save_translator(folder / "model"), folder / "export")
    path = folder / "export" / STEP
    graph = onnx.load(path)
    for node in graph.graph.node:
        for place, name in enumerate(node.output):
            if name == "leading_log_probs":
                node.output[place] = "sound"
    graph.graph.initializer.append(numpy_helper.from_array(np.array([side]), "side"))
    chain = [
        helper.make_node("Cast", ["tokens"], ["numbers"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["numbers", "numbers"], ["zeros"]),
        helper.make_node("ReduceMax", ["zeros"], ["zero"], keepdims=0),
        helper.make_node("Shape", ["tokens"], ["rows"]),
        helper.make_node("Mul", ["rows", "side"], ["size"]),
        helper.make_node("Concat", ["size", "size"], ["square"], axis=0),
        helper.make_node("Expand", ["zero", "square"], ["product0"]),
        *(
            helper.make_node("MatMul", [f"product{n}", "product0"], [f"product{n + 1}"])
            for n in range(nodes)
        ),
        helper.make_node("ReduceMax", [f"product{nodes}"], ["slow"], keepdims=0),
        helper.make_node("Add", ["sound", "slow"], ["leading_log_probs"]),
    ]
    graph.graph.node.extend(chain)
    content = graph.SerializeToString()
    path.write_bytes(content)
    about = json.loads((folder / "export" / EXPORT).read_text())
    about["files"][STEP] = hashlib.sha256(content).hexdigest()
    (folder / "export" / EXPORT).write_text(json.dumps(about))
    return folder / "export"
