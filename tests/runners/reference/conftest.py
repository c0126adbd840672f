"""Property tests here never judge by the clock: the machine may be busy. Decorators read the profile at import."""

from __future__ import annotations

import torch
from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
# Threads that wait for each other over tiny tensors cost seconds where cores are shared.
torch.set_num_threads(1)
