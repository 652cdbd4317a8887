"""The LSTM state that `start="carry"` keeps from one batch to the next, row by row."""

from __future__ import annotations

import torch

from polyseme.nn.lstm.elmo_lstm import ElmoLstm
from polyseme.nn.lstm.layers import LstmState


class CarriedState:
    """Empty at first; rows that were never read begin from zeros."""

    def __init__(self) -> None:
        self._state: LstmState | None = None

    def reset(self) -> None:
        self._state = None

    def take(self, lstm: ElmoLstm, rows: int) -> LstmState:
        """Return the state of the first `rows` rows, on the device of the LSTM."""
        zero = lstm.zero_state(0)
        state = self._state or zero
        state = LstmState(state.hidden.to(zero.hidden), state.cell.to(zero.cell))
        if state.cell.is_inference() and not torch.is_inference_mode_enabled():  # left by `embed`: gradients need a copy
            state = LstmState(state.hidden.clone(), state.cell.clone())
        have = state.cell.shape[2]
        if have < rows:
            more = lstm.zero_state(rows - have)
            state = LstmState(torch.cat([state.hidden, more.hidden], 2), torch.cat([state.cell, more.cell], 2))
        self._state = state
        return LstmState(state.hidden[:, :, :rows], state.cell[:, :, :rows])

    def keep(self, state: LstmState) -> None:
        """Replace the state of the first rows by that at the end of their sentences, without gradients; further rows stay."""
        assert self._state is not None
        state = LstmState(state.hidden.detach(), state.cell.detach())
        rows = state.cell.shape[2]
        self._state = LstmState(
            torch.cat([state.hidden, self._state.hidden[:, :, rows:]], 2),
            torch.cat([state.cell, self._state.cell[:, :, rows:]], 2),
        )
