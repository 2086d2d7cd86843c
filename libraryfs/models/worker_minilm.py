"""all-MiniLM-L6-v2 as an ONNX graph, made in memory from the packaged int8 weights.

The package's own graph turns every weight into float32 when it loads, and multiplies those. This one keeps them int8:
each weight is symmetric with one scale for an output column, which MatMulNBits holds exactly (blocks of a column share
its scale), and rows of the word embeddings are scaled after they are looked up. Activations are rounded to 8 bits in
blocks of one row, so a text's vector does not depend on the texts beside it. The model: Wang et al. 2020
(arXiv:2002.10957), mean of the tokens' states, divided by its length.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

LAYERS: Final = 6
HEADS: Final = 12
WIDTH: Final = 384
BLOCK: Final = 64
"""Inputs that share a rounding scale. With 32 it is a fifth slower; with 128, the cosine is 0.9990 and not 0.9992."""
EPSILON: Final = 1e-12
MICROSOFT: Final = "com.microsoft"
MATRICES: Final = ("query", "key", "value", "attention", "intermediate", "output")

Matrix = tuple[NDArray[np.int8], NDArray[np.float32]]
"""int8 (inputs, outputs), and float32 scales (1, outputs)."""


def graph(weights: Path) -> bytes:
    """The model, serialised. Inputs: `ids` and `mask`, int32 (texts, tokens), mask 1 where there is a token.

    Output: `vectors`, float32 (texts, 384), of length 1.
    """
    serialised: bytes = _Builder(weights).model().SerializeToString()
    return serialised


class _Builder:
    """Nodes and tensors of the graph as they come."""

    def __init__(self, weights: Path) -> None:
        self._source = {
            tensor.name.removeprefix("inner."): numpy_helper.to_array(tensor)
            for tensor in onnx.load(weights).graph.initializer
        }
        # The exporter numbered the matrices in the order of the computation, and gave them no names.
        numbers = sorted(int(name[4:-2]) for name in self._source if name.startswith("val_") and name.endswith("_q"))
        places = [(layer, part) for layer in range(LAYERS) for part in MATRICES]
        self._matrices: dict[tuple[int, str], Matrix] = {
            place: (self._source[f"val_{number}_q"], self._source[f"val_{number}_scale"])
            for place, number in zip(places, numbers, strict=True)
        }
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: list[onnx.TensorProto] = []

    def model(self) -> onnx.ModelProto:
        state = self._embeddings()
        for layer in range(LAYERS):
            state = self._layer(layer, state)
        self._pool(state)
        shape = ["texts", "tokens"]
        graph = helper.make_graph(
            self._nodes,
            "all-MiniLM-L6-v2",
            [helper.make_tensor_value_info(name, TensorProto.INT32, shape) for name in ("ids", "mask")],
            [helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", WIDTH])],
            self._tensors,
        )
        operators = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=operators, ir_version=9)

    def _embeddings(self) -> str:
        words = self._node(
            "Gather", [self._tensor("words", self._source["embeddings.word_embeddings.weight_q"]), "ids"]
        )
        scales = self._tensor("word_scales", self._source["embeddings.word_embeddings.weight_scale"])
        scaled = self._node(
            "Mul", [self._node("Cast", [words], to=TensorProto.FLOAT), self._node("Gather", [scales, "ids"])]
        )
        positions = self._source["embeddings.position_embeddings.weight_q"].astype(np.float32)
        positions *= self._source["embeddings.position_embeddings.weight_scale"]
        positions += self._source["embeddings.token_type_embeddings.weight"][0]  # one segment only
        zero = self._tensor("zero", np.array([0], np.int64))
        length = self._node("Shape", ["ids"], start=1, end=2)
        places = self._node("Slice", [self._tensor("positions", positions), zero, length, zero])
        norm = [self._part("embeddings.LayerNorm.weight"), self._part("embeddings.LayerNorm.bias")]
        return self._node("LayerNormalization", [self._node("Add", [scaled, places]), *norm], axis=-1, epsilon=EPSILON)

    def _layer(self, layer: int, state: str) -> str:
        attended = self._attention(layer, state)
        state = self._add_and_norm(f"encoder.layer.{layer}.attention.output.LayerNorm", attended, state)
        wide = self._linear(layer, ["intermediate"], [f"encoder.layer.{layer}.intermediate.dense"], state)
        narrow = self._linear(
            layer, ["output"], [f"encoder.layer.{layer}.output.dense"], self._node("Gelu", [wide], domain=MICROSOFT)
        )
        return self._add_and_norm(f"encoder.layer.{layer}.output.LayerNorm", narrow, state)

    def _attention(self, layer: int, state: str) -> str:
        parts = ["query", "key", "value"]
        own = f"encoder.layer.{layer}.attention"
        joined = self._linear(layer, parts, [f"{own}.self.{part}" for part in parts], state)
        split = [f"{joined}_{part}" for part in parts]
        self._nodes.append(helper.make_node("Split", [joined], split, axis=-1, num_outputs=3))
        mixed = self._node("MultiHeadAttention", [*split, "", "mask"], domain=MICROSOFT, num_heads=HEADS)
        return self._linear(layer, ["attention"], [f"{own}.output.dense"], mixed)

    def _linear(self, layer: int, parts: list[str], names: list[str], state: str) -> str:
        """state · W + b, of several matrices side by side in one product."""
        matrices = [self._matrices[layer, part] for part in parts]
        whole = np.concatenate([matrix for matrix, _ in matrices], axis=1)
        scales = np.concatenate([scale for _, scale in matrices], axis=1)
        inputs, outputs = whole.shape
        blocks = inputs // BLOCK
        name = "_".join([f"layer{layer}", *parts])
        # Stored unsigned, with 128 for zero, the operator's default.
        stored = (whole.T.astype(np.int16) + 128).astype(np.uint8).reshape(outputs, blocks, BLOCK)
        bias = np.concatenate([self._source[f"{each}.bias"] for each in names])
        operands = [
            state,
            self._tensor(name, stored),
            self._tensor(f"{name}_scales", np.repeat(scales.reshape(-1), blocks).astype(np.float32)),
            "",
            "",
            self._tensor(f"{name}_bias", bias),
        ]
        options = {"K": inputs, "N": outputs, "bits": 8, "block_size": BLOCK, "accuracy_level": 4}
        return self._node("MatMulNBits", operands, domain=MICROSOFT, **options)

    def _add_and_norm(self, name: str, new: str, old: str) -> str:
        norm = [self._part(f"{name}.weight"), self._part(f"{name}.bias")]
        return self._node("SkipLayerNormalization", [new, old, *norm], domain=MICROSOFT, epsilon=EPSILON)

    def _pool(self, state: str) -> None:
        """The sum of the tokens' states, of length 1: its direction is the mean's."""
        axis = self._tensor("axis", np.array([1], np.int64))
        weights = self._node("Unsqueeze", [self._node("Cast", ["mask"], to=TensorProto.FLOAT), axis])
        total = self._node("Squeeze", [self._node("MatMul", [weights, state]), axis])
        self._nodes.append(helper.make_node("LpNormalization", [total], ["vectors"], axis=-1, p=2))

    def _part(self, name: str) -> str:
        return self._tensor(name, self._source[name])

    def _tensor(self, name: str, value: NDArray[Any]) -> str:
        self._tensors.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def _node(self, operator: str, inputs: list[str], domain: str = "", **options: Any) -> str:
        output = f"{operator.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **options))
        return output
