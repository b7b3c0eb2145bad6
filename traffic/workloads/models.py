"""Language models: what a token costs in computation and in key-value cache.

Dimensions as published with the models (model cards and configuration files).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topologies.errors import UnknownNameError
from topologies.reading import Reader, as_text

BF16_BYTES = 2


@dataclass(frozen=True)
class Model:
    """What the workload builder needs of a model.

    Attributes:
        name: what a user writes.
        parameters: parameters that take part in computing a token (the active ones of a mixture
            of experts).
        kv_bytes_per_token: key-value cache of one token, all layers, bytes.
    """

    name: str
    parameters: float
    kv_bytes_per_token: int

    def prefill_flop(self, tokens: int) -> float:
        """Floating-point operations of a prompt: 2 per parameter and token, attention left out."""
        return 2 * self.parameters * tokens


def kv_bytes(layers: int, kv_heads: int, head_dim: int, value_bytes: int = BF16_BYTES) -> int:
    """Key-value cache of one token: keys and values of every layer, bytes."""
    return 2 * layers * kv_heads * head_dim * value_bytes


def latent_kv_bytes(layers: int, latent_dim: int, value_bytes: int = BF16_BYTES) -> int:
    """Cache of one token with multi-head latent attention: one latent vector a layer, bytes."""
    return layers * latent_dim * value_bytes


MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model("llama-2-7b", 6.74e9, kv_bytes(32, 32, 128)),
        Model("llama-2-13b", 13.02e9, kv_bytes(40, 40, 128)),
        Model("llama-2-70b", 68.98e9, kv_bytes(80, 8, 128)),
        Model("llama-3-8b", 8.030e9, kv_bytes(32, 8, 128)),
        Model("llama-3-70b", 70.554e9, kv_bytes(80, 8, 128)),
        Model("llama-3.1-405b", 405.85e9, kv_bytes(126, 8, 128)),
        Model("mistral-7b", 7.24e9, kv_bytes(32, 8, 128)),
        Model("mixtral-8x7b", 12.9e9, kv_bytes(32, 8, 128)),
        Model("qwen2.5-7b", 7.62e9, kv_bytes(28, 4, 128)),
        Model("qwen2.5-72b", 72.7e9, kv_bytes(80, 8, 128)),
        Model("gpt-3-175b", 174.6e9, kv_bytes(96, 96, 128)),
        Model("deepseek-v3", 37e9, latent_kv_bytes(61, 512 + 64)),
    )
}
"""The models that can be named in an experiment."""


def as_model(value: object, path: str) -> Model:
    """A name of `MODELS`, or ``{parameters: 7e9, kv_bytes_per_token: 128 KiB}``."""
    if not isinstance(value, Mapping):
        name = as_text(value, path)
        if name not in MODELS:
            raise UnknownNameError(path, "model", name, MODELS)
        return MODELS[name]
    with Reader(value, path) as reader:
        return Model(
            reader.text("name", "custom"),
            reader.number("parameters", minimum=1),
            reader.size("kv_bytes_per_token"),
        )
