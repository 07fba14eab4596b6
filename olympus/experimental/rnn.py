"""Long short-term memory: names only."""

from .._src.base.util import publish as _publish
from .._src.nn.recurrent import (
    get_num_params_in_lstm, init_lstm_weight, lstm, lstm_bwd, lstm_fwd, lstm_ref, swap_lstm_gates,
    unpack_lstm_weights,
)

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_bwd", "lstm_fwd", "lstm_ref",
    "swap_lstm_gates", "unpack_lstm_weights",
]

_publish(__name__)
