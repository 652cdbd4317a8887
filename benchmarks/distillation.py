"""A trial for the shipped models: a wider teacher, and a small model that learns from it and from the text.

    python -m benchmarks.distillation widen en start --cells 4096   # the same language model with wider cells, tied output
    polyseme adapt start --corpus text.txt --out teacher ...
    python -m benchmarks.distillation widen en small --cells 1280
    python -m benchmarks.distillation adapt teacher 0.6 small --corpus text.txt --out student ...

`widen` changes nothing of what the model predicts: new cells have random gates and a projection of zero, and the word table,
which is the output layer too, is read with weights of zero. `adapt` is `polyseme adapt` with another loss, the cross-entropy
with a mixture: so much of what the teacher predicts (here 0.6), and the word that follows. Teacher and model have one
vocabulary. Results are in docs/en/results/tuning.md.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

import polyseme
from benchmarks.arguments import at_least
from polyseme.__main__ import main as polyseme_command
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import WordTableConfig
from polyseme.nn.lstm.layers import LstmLayer, LstmState
from polyseme.nn.lstm.packed_rows import run_packed_rows
from polyseme.nn.output.full import SCORES, SCORES_CUDA, FullSoftmax
from polyseme.nn.output.inplace_softmax import softmax_
from polyseme.pretraining.adapt import ElmoAdaptationJob
from polyseme.pretraining.elmo_packed import PackedElmoObjective, PackedTensors
from polyseme.training.base import Loss


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    widening = verbs.add_parser("widen", help="write a model with more cells and a tied output layer")
    widening.add_argument("model")
    widening.add_argument("out")
    widening.add_argument("--cells", type=at_least(1), required=True)
    adapting = verbs.add_parser("adapt", help="polyseme adapt, with a teacher")
    adapting.add_argument("teacher")
    adapting.add_argument("share", type=float, help="part of the teacher in what is learned, from 0 to 1")
    given, rest = parser.parse_known_args(arguments)
    if given.verb == "widen":
        torch.manual_seed(0)
        model = load(given.model)
        if given.cells < (least := model.config.lstm.cell_size) or model.tokens.words is not None:
            parser.error(f"{given.model} has {least:,} cells: give as many or more, and a model that reads characters alone")
        widened(model, given.cells).save_pretrained(given.out)
        return 0
    if not 0 <= given.share <= 1:
        parser.error(f"share is {given.share:g}; allowed: from 0, the text alone, to 1, the teacher alone")
    teacher = load(given.teacher).eval()
    for weight in teacher.parameters():
        weight.requires_grad = False
    original = ElmoAdaptationJob.training_data

    def with_teacher(job: ElmoAdaptationJob, model: Elmo, *data: Any) -> tuple[Any, Any]:
        if list(model.vocabulary or ()) != list(teacher.vocabulary or ()):
            raise SystemExit(f"{given.teacher} has another vocabulary than the model to train: give two models with one")
        objective, batches = original(job, model, *data)
        objective.__class__ = DistilledObjective
        objective.set_teacher(teacher, given.share)
        return objective, batches

    ElmoAdaptationJob.training_data = with_teacher  # type: ignore[method-assign, assignment]
    return polyseme_command(["adapt", *rest])


def load(name: str) -> Elmo:
    model = polyseme.load(name)
    if not isinstance(model, Elmo) or not isinstance(model.output, FullSoftmax):
        raise SystemExit(f"{name} is no ELMo with an output layer: give one, such as en")
    return model


def widened(old: Elmo, cells: int) -> Elmo:
    """The same language model with more cells, and with its output layer as a word table that it reads."""
    assert old.vocabulary is not None and isinstance(old.output, FullSoftmax) and old.learned is not None
    before, dim = old.config.lstm.cell_size, old.output.dim
    words = WordTableConfig(size=len(old.vocabulary), dim=dim)
    config = old.config.replace(words=words, lstm=old.config.lstm.replace(cell_size=cells))
    new = Elmo(config, splitter=old.splitter, vocabulary=old.vocabulary)
    tied = new.tie_output()
    assert new.tokens.characters is not None and old.tokens.characters is not None and new.learned is not None
    assert new.tokens.projection is not None and old.tokens.projection is not None
    with torch.no_grad():
        tied.weight.copy_(old.output.weight)
        tied.bias.copy_(old.output.bias)
        new.tokens.characters.load_state_dict(old.tokens.characters.state_dict())
        new.tokens.projection.bias.copy_(old.tokens.projection.bias)
        new.tokens.projection.weight[:, :dim] = 0.0  # words come first
        new.tokens.projection.weight[:, dim:] = old.tokens.projection.weight
        for wide, narrow in zip(lstm_layers(new), lstm_layers(old), strict=True):
            assert wide.projection_weight is not None and narrow.projection_weight is not None
            for name in ("input_weight", "recurrent_weight", "bias"):
                gates, mine = getattr(wide, name), getattr(narrow, name)
                gates.view(4, cells, *gates.shape[1:])[:, :before] = mine.view(4, before, *mine.shape[1:])
            wide.projection_weight[:, :before] = narrow.projection_weight
            wide.projection_weight[:, before:] = 0.0
        new.learned["hidden"].copy_(old.learned["hidden"])
        new.learned["cell"].zero_()
        new.learned["cell"][..., :before] = old.learned["cell"]
    return new


def lstm_layers(model: Elmo) -> list[LstmLayer]:
    return [each for each in model.lstm.modules() if isinstance(each, LstmLayer)]


class DistilledObjective(PackedElmoObjective):
    """The loss of `PackedElmoObjective`, with a teacher's distribution in what is to be predicted."""

    def set_teacher(self, teacher: Elmo, share: float) -> None:
        self._teacher, self._share = (teacher,), share  # in a tuple: the teacher is no part of what is trained
        self._teacher_state: LstmState | None = None

    def loss(self, batch: PackedTensors) -> Loss:  # type: ignore[override]
        teacher = self._teacher[0].to(self.model.device)
        top, self._carried = self._read(*self._inputs(self.model, batch, self._carried))
        with torch.no_grad():
            theirs, self._teacher_state = run_packed_rows(teacher.lstm, *self._inputs(teacher, batch, self._teacher_state))
        states, targets = F.dropout(top, self.dropout, self.training).flatten(0, 2), batch.targets.flatten()
        output, other = self.model.output, teacher.output
        assert isinstance(output, FullSoftmax) and isinstance(other, FullSoftmax)
        total, each = DistilledLoss.apply(states, output.weight, output.bias, targets, theirs.flatten(0, 2), other, self._share)
        forward, backward = each.view(2, -1).mean(1)
        return Loss(total / len(targets), batch.words, components={"forward": forward, "backward": backward}, sampled=False)

    @staticmethod
    def _inputs(
        model: Elmo, batch: PackedTensors, carried: LstmState | None
    ) -> tuple[Tensor, Tensor | None, LstmState, LstmState]:
        table, start = model.tokens(batch.distinct), model.start_state(None, 1)
        vectors = table.float().index_select(0, batch.index.flatten()).to(table.dtype).view(*batch.index.shape, -1)
        return vectors, batch.begins, start, carried if carried is not None else start.expand(batch.index.shape[2])


class DistilledLoss(torch.autograd.Function):
    """Cross-entropy with a mixture of the target and a teacher's distribution, summed; its value is that of the target alone.

    The gradient of the scores is softmax(scores) - share * softmax(teacher's scores) - (1 - share) at the target.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        theirs: Tensor,
        teacher: FullSoftmax,
        share: float,
    ) -> tuple[Tensor, Tensor]:
        kind = states.dtype
        each = torch.empty(len(states), device=states.device, dtype=weight.dtype)
        grad_states = torch.empty_like(states)
        with torch.autocast(states.device.type, enabled=False):
            own = [tensor.detach().to(kind) for tensor in (weight, bias)]
            other = [tensor.detach().to(kind) for tensor in (teacher.weight, teacher.bias)]
            grad_weight, grad_bias = torch.zeros_like(weight), torch.zeros_like(bias)
            step = max(1, (SCORES_CUDA if states.is_cuda else SCORES) // len(weight))
            for i in range(0, len(states), step):
                x, wanted = states[i : i + step], targets[i : i + step, None]
                scores = torch.addmm(own[1], x, own[0].t())
                expected = torch.addmm(other[1], theirs[i : i + step].to(kind), other[0].t())
                at_target = scores.gather(1, wanted)[:, 0].clone()
                each[i : i + step] = softmax_(scores) - at_target
                softmax_(expected)
                scores.sub_(expected, alpha=share)
                scores.scatter_add_(1, wanted, scores.new_full((1, 1), share - 1).expand_as(wanted))
                torch.mm(scores, own[0], out=grad_states[i : i + step])
                grad_weight += scores.t() @ x
                grad_bias += scores.sum(0, dtype=bias.dtype)
        ctx.save_for_backward(grad_states, grad_weight, grad_bias)
        ctx.mark_non_differentiable(each)
        return each.sum(), each

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_states, grad_weight, grad_bias = ctx.saved_tensors
        scale = grads[0]
        return (scale * grad_states).to(grad_states.dtype), scale * grad_weight, scale * grad_bias, None, None, None, None


if __name__ == "__main__":
    sys.exit(main())
