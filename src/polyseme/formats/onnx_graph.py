"""The graphs of an ELMo in ONNX, one for each reading direction.

Inputs: of distinct words `characters` (distinct, characters), and `words` (distinct,) where the model has a word table; which
of them stands where, `index` (batch, words); `lengths` (batch,). The character network is most of the work if it reads every
word of a text with all its padding, so it reads each word once, and padding may be cut as in `polyseme.nn.char_cnn`.
Outputs: `layer0`, `layer1` ... (batch, words, size), the half of each layer that this direction gives; at padding they mean
nothing. A graph adds the begin token (backward: the end token) and starts from the model's start state by itself. The LSTMs are
a `Scan` over the words: ONNX's own LSTM has no projection. In int8 each row of a matrix has a scale of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.base.errors import MissingExtraError
from polyseme.nn.char_cnn import CharCnn, Highway
from polyseme.nn.lstm.layers import LstmLayer

try:
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    raise MissingExtraError("ONNX graphs are written by onnx", "onnx") from error

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from polyseme.encoders.elmo import Elmo

OPSET, IR_VERSION = 17, 8
DIRECTIONS = ("forward", "backward")
BATCH, WORDS, DISTINCT, CHARACTERS = "batch", "words", "distinct", "characters"


@torch.no_grad()
def direction_graph(model: Elmo, direction: int, *, int8: bool = False) -> ModelProto:
    """Return the graph of one direction: 0 reads from the left, 1 from the right."""
    graph = _Graph(int8)
    config = model.config
    shapes: dict[str, list[str | int | None]] = {"index": [BATCH, WORDS], "lengths": [BATCH]}
    if config.characters is not None:
        shapes["characters"] = [DISTINCT, CHARACTERS]
    if config.words is not None:
        shapes["words"] = [DISTINCT]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name, shape in shapes.items()]
    vectors = graph.reversed(graph.add("Gather", _word_vectors(graph, model), "index"), direction)
    rows = graph.add("Slice", graph.add("Shape", "lengths"), graph.numbers(0), graph.numbers(1), graph.numbers(0))
    first = model.tokens(model.word_inputs([(config.begin, config.end)[direction]]))
    before = graph.add("Expand", graph.constant(first[None]), graph.joined(rows, graph.numbers(1, config.dim)))
    read = graph.add("Transpose", graph.add("Concat", before, vectors, axis=1), perm=[1, 0, 2])  # (words + 1, batch, dim)
    layers = [read]
    start = model.start_state(None, 1)
    for level, layer in enumerate(model.lstm.stacks()[direction]):
        state = [
            graph.add("Expand", graph.constant(each), graph.joined(rows, graph.numbers(each.shape[1])))
            for each in (start.hidden[direction, level], start.cell[direction, level])
        ]
        out = _recurrence(graph, layer, layers[-1], state)
        layers.append(graph.add("Add", out, layers[-1]) if config.lstm.residual and level > 0 else out)
    outputs = []
    for level, each in enumerate(layers):
        after = graph.add("Slice", each, graph.numbers(1), graph.numbers(2**31), graph.numbers(0))
        ordered = graph.reversed(graph.add("Transpose", after, perm=[1, 0, 2]), direction)
        more = config.half - (config.dim if level == 0 else config.output)
        if more:
            ordered = graph.add("Pad", ordered, graph.numbers(0, 0, 0, 0, 0, more))
        graph.add("Identity", ordered, name=f"layer{level}")
        outputs.append(helper.make_tensor_value_info(f"layer{level}", TensorProto.FLOAT, [BATCH, WORDS, config.half]))
    made = helper.make_graph(graph.nodes, f"polyseme_{DIRECTIONS[direction]}", inputs, outputs, graph.initializers)
    return helper.make_model(
        made, producer_name="polyseme", ir_version=IR_VERSION, opset_imports=[helper.make_opsetid("", OPSET)]
    )


class _Graph:
    """Nodes and weights that are added one after another; each `add` returns the name of its result."""

    def __init__(self, int8: bool) -> None:
        self.nodes: list[NodeProto] = []
        self.initializers: list[TensorProto] = []
        self._int8 = int8
        self._names = 0

    def add(self, op: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """Add a node with one result."""
        result = name or self._new(op)
        self.nodes.append(helper.make_node(op, list(inputs), [result], **attributes))
        return result

    def constant(self, values: Tensor | NDArray[Any]) -> str:
        """Add numbers as they are."""
        array = values.detach().cpu().float().numpy() if isinstance(values, Tensor) else values
        name = self._new("constant")
        self.initializers.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def numbers(self, *values: int) -> str:
        """Add a short list of integers."""
        return self.constant(np.array(values, dtype=np.int64))

    def joined(self, *shapes: str) -> str:
        return self.add("Concat", *shapes, axis=0)

    def weight(self, values: Tensor) -> str:
        """Add a matrix, or filters; in int8 with a scale for each row."""
        if not self._int8:
            return self.constant(values)
        array = values.detach().cpu().float().numpy()
        scale = np.abs(array).reshape(len(array), -1).max(axis=1) / 127
        scale[scale == 0] = 1
        rounded = np.round(array / scale.reshape(-1, *[1] * (array.ndim - 1))).astype(np.int8)
        zero = np.zeros(len(array), dtype=np.int8)
        return self.add(
            "DequantizeLinear", *(self.constant(each) for each in (rounded, scale.astype(np.float32), zero)), axis=0
        )

    def linear(self, x: str, weight: Tensor, bias: Tensor | None = None) -> str:
        """x @ weight.T + bias, over the last axis."""
        product = self.add("MatMul", x, self.add("Transpose", self.weight(weight), perm=[1, 0]))
        return product if bias is None else self.add("Add", product, self.constant(bias))

    def reversed(self, x: str, direction: int) -> str:
        """Turn sentences (batch, words, size) round for the backward direction; padding stays behind them."""
        return self.add("ReverseSequence", x, "lengths", batch_axis=0, time_axis=1) if direction else x

    def _new(self, what: str) -> str:
        self._names += 1
        return f"{what}_{self._names}"


def _word_vectors(graph: _Graph, model: Elmo) -> str:
    """Distinct words -> their own vectors, (distinct, dim)."""
    parts = []
    if model.tokens.words is not None:
        parts.append(graph.add("Gather", graph.weight(model.tokens.words.weight), "words"))
    if model.tokens.characters is not None:
        parts.append(_characters(graph, model.tokens.characters, "characters"))
    joined = graph.add("Concat", *parts, axis=1) if len(parts) > 1 else parts[0]
    projection = model.tokens.projection
    return joined if projection is None else graph.linear(joined, projection.weight, projection.bias)


def _characters(graph: _Graph, network: CharCnn, ids: str) -> str:
    """Character ids (n, characters) -> (n, filters): as `CharCnn.convolve` and `_finish`."""
    embedded = graph.add("Gather", graph.weight(network.embedding), ids)
    channels = graph.add("Transpose", embedded, perm=[0, 2, 1])
    pooled = [
        graph.add("ReduceMax", graph.add("Conv", channels, graph.weight(filters.weight)), axes=[2], keepdims=0)
        for filters in network.filters
    ]
    x = graph.add("Add", graph.add("Concat", *pooled, axis=1), graph.constant(torch.cat([f.bias for f in network.filters])))
    x = graph.add("Relu" if network.config.activation == "relu" else "Tanh", x)
    for highway in network.highways:
        assert isinstance(highway, Highway)
        weights, biases = highway.weight.chunk(2), highway.bias.chunk(2)
        candidate = graph.add("Relu", graph.linear(x, weights[0], biases[0]))
        gate = graph.add("Sigmoid", graph.linear(x, weights[1], biases[1]))
        x = graph.add("Add", x, graph.add("Mul", gate, graph.add("Sub", candidate, x)))
    return x


def _recurrence(graph: _Graph, layer: LstmLayer, inputs: str, state: list[str]) -> str:
    """One layer over (words, batch, inputs) from a state: (words, batch, output)."""
    gates = graph.linear(inputs, layer.input_weight, layer.bias)
    # the body refers to the weights of the graph around it
    recurrent = graph.add("Transpose", graph.weight(layer.recurrent_weight), perm=[1, 0])
    projection = None
    if layer.projection_weight is not None:
        projection = graph.add("Transpose", graph.weight(layer.projection_weight), perm=[1, 0])
    body = _Graph(False)
    body._names = graph._names + 1_000_000  # names of a body must differ from those around it
    sums = body.add("Add", "gates", body.add("MatMul", "hidden", recurrent))
    size = layer.config.cell_size
    parts = [body._new("gate") for _ in range(4)]
    body.nodes.append(helper.make_node("Split", [sums, graph.numbers(*[size] * 4)], parts, axis=1))
    i, f, o = (body.add("Sigmoid", parts[number]) for number in (0, 1, 3))
    kept, new = body.add("Mul", f, "cell"), body.add("Mul", i, body.add("Tanh", parts[2]))
    cell = _clipped(body, graph, body.add("Add", kept, new), layer.cell_clip)
    hidden = body.add("Mul", o, body.add("Tanh", cell))
    if projection is not None:
        hidden = _clipped(body, graph, body.add("MatMul", hidden, projection), layer.projection_clip)
    ends = [body.add("Identity", each) for each in (hidden, cell, hidden)]
    width = layer.config.output_size

    def info(name: str, columns: int) -> Any:
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, columns])

    before = [info("hidden", width), info("cell", size), info("gates", 4 * size)]
    after = [info(ends[0], width), info(ends[1], size), info(ends[2], width)]
    made = helper.make_graph(body.nodes, graph._new("step"), before, after)
    results = [graph._new(each) for each in ("hidden", "cell", "outputs")]
    graph.nodes.append(helper.make_node("Scan", [*state, gates], results, body=made, num_scan_inputs=1))
    return results[2]


def _clipped(body: _Graph, graph: _Graph, x: str, bound: float | None) -> str:
    if bound is None:
        return x
    bounds = [graph.constant(np.array(each, dtype=np.float32)) for each in (-bound, bound)]
    return body.add("Clip", x, *bounds)
