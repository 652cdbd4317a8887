"""ONNX: an ELMo that `polyseme convert MODEL OUT --to onnx` wrote, run by ONNX Runtime (extra `onnx`).

from polyseme.integrations.onnx import OnnxElmo
OnnxElmo("my-onnx").embed(["The bank of the river."])
"""

from polyseme.formats.onnx_runtime import OnnxElmo

__all__ = ["OnnxElmo"]
