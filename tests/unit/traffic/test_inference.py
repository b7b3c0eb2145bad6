"""Inference services: what is read, which tasks a request becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.ideal_network import IdealNetwork, leaf_spine
from topologies.errors import SpecError, UnknownNameError
from traffic.tasks import Compute, Flow, Task
from traffic.workloads import build, parse_workload
from traffic.workloads.base import Workload
from traffic.workloads.models import MODELS

FABRIC = leaf_spine()
ONE = {"process": "bursts", "burst": 1, "every": "1 s", "requests": 1, "generated_tokens": 3}


def service(**keys: Any) -> dict[str, Any]:
    """A service with one request of 1000 and 3 tokens; keys given as None are left out."""
    raw = {
        "kind": "inference",
        "name": "chat",
        "clients": 2,
        "servers": 2,
        "arrivals": {**ONE, "context_tokens": 1000},
        "tpot": "10 ms",
        **keys,
    }
    return {key: value for key, value in raw.items() if value is not None}


def built(shrink: float = 1.0, seed: int = 7, folder: Path = Path(), **keys: Any) -> Workload:
    """The tasks of such a service."""
    spec = parse_workload(service(**keys), "workloads[1]", folder)
    return build(spec, FABRIC, seed, shrink, 50)


def by_tag(workload: Workload) -> dict[str, Task]:
    """Its tasks by what follows the request's number in the tag."""
    return {task.tag.split(".", 1)[1]: task for task in workload.tasks}


def flow(workload: Workload, what: str) -> Flow:
    """The flow of this tag."""
    task = by_tag(workload)[what]
    assert isinstance(task, Flow)
    return task


def test_a_request_becomes_prompt_prefill_cache_and_tokens() -> None:
    """Sizes, places and dependencies of the tasks of one disaggregated request."""
    workload = built()
    tasks = by_tag(workload)
    assert list(tasks) == ["prompt", "prefill", "kv", "decode", "t0", "t1", "t2"]
    prompt, kv = flow(workload, "prompt"), flow(workload, "kv")
    assert (prompt.dst, kv.src, kv.dst) == ("h3", "h3", "h4")
    assert prompt.src in ("h1", "h2")
    assert prompt.size_bytes == 1000 * 4
    assert kv.size_bytes == 1000 * 327_680
    assert tasks["prefill"].after == (prompt.id,)
    assert kv.after == (tasks["prefill"].id,)
    for number in range(3):
        token = flow(workload, f"t{number}")
        assert (token.src, token.dst, token.size_bytes) == ("h4", prompt.src, 64)
        assert (token.after, token.delay_ns) == ((kv.id,), (number + 1) * 10_000_000)


def test_prefill_takes_two_operations_per_parameter_and_token() -> None:
    """70.554e9 parameters, 1000 tokens, 1000 TFLOP/s at 50 %: 282 ms on the server's GPU."""
    prefill = by_tag(built(tflops=1000, mfu="50 %"))["prefill"]
    assert isinstance(prefill, Compute)
    assert prefill.duration_ns == 2 * 70_554_000_000 * 1000 * 1_000_000_000 // 500_000_000_000_000
    assert prefill.resource == "gpu:chat:h3"


def test_decode_is_unlimited_and_spans_all_tokens() -> None:
    """Continuous batching: the decode occupies no resource and lasts as long as its tokens."""
    decode = by_tag(built())["decode"]
    assert isinstance(decode, Compute)
    assert (decode.resource, decode.duration_ns) == ("", 30_000_000)


def test_aggregated_moves_no_cache() -> None:
    """One server takes the prompt and sends the tokens."""
    workload = built(mode="aggregated", servers=1)
    assert "kv" not in by_tag(workload)
    assert flow(workload, "t0").src == flow(workload, "prompt").dst == "h3"
    assert flow(workload, "t0").after == (by_tag(workload)["prefill"].id,)


def test_the_cache_is_split_over_channels() -> None:
    """Tokens wait for all parts of the cache."""
    workload = built(channels=3, arrivals={**ONE, "context_tokens": 1})
    parts = [flow(workload, f"kv.c{qp}") for qp in range(3)]
    assert [part.size_bytes for part in parts] == [109_227, 109_227, 109_226]
    assert [part.qp for part in parts] == [0, 1, 2]
    assert flow(workload, "t0").after == tuple(part.id for part in parts)


def test_without_streaming_only_the_first_and_the_last_token_are_sent() -> None:
    """The first and the last token keep their times."""
    workload = built(stream=False)
    assert [tag for tag in by_tag(workload) if tag.startswith("t")] == ["t0", "t2"]
    assert flow(workload, "t2").delay_ns == 30_000_000
    single = built(stream=False, arrivals={**ONE, "generated_tokens": 1})
    assert [tag for tag in by_tag(single) if tag.startswith("t")] == ["t0"]


def test_a_request_for_no_tokens_gets_an_empty_answer() -> None:
    """0 generated tokens: no cache moves, no decode, one message after the prefill."""
    workload = built(arrivals={**ONE, "generated_tokens": 0})
    assert list(by_tag(workload)) == ["prompt", "prefill", "end"]
    assert flow(workload, "end").src == flow(workload, "prompt").dst
    (request,) = workload.meta["requests"]  # type: ignore[misc]
    assert request["first_token"] is None
    assert request["end"] == flow(workload, "end").id


def test_an_empty_prompt_is_still_a_message() -> None:
    """0 context tokens: a prompt of one byte, a prefill of no time, no cache, tokens as usual."""
    workload = built(arrivals={**ONE, "context_tokens": 0})
    assert list(by_tag(workload)) == ["prompt", "prefill", "decode", "t0", "t1", "t2"]
    assert flow(workload, "prompt").size_bytes == 1
    assert flow(workload, "t0").after == (by_tag(workload)["prefill"].id,)


def test_shrink_divides_gaps_bytes_and_computations_but_not_tokens() -> None:
    """With shrink 10: a tenth of arrivals, prompt, cache, prefill, tpot; 64-byte tokens stay."""
    arrivals = {"process": "bursts", "burst": 1, "every": "1 s", "requests": 2}
    whole, small = (built(shrink, arrivals=arrivals, start="5 s") for shrink in (1, 10))
    assert len(whole.tasks) == len(small.tasks)
    for big, little in zip(whole.tasks, small.tasks, strict=True):
        assert (big.id, big.tag, big.after) == (little.id, little.tag, little.after)
        assert little.start_ns == round(big.start_ns / 10)
        assert little.delay_ns == round(big.delay_ns / 10)
        if isinstance(big, Compute) and isinstance(little, Compute):
            assert little.duration_ns == pytest.approx(big.duration_ns / 10, abs=0.5)
        elif isinstance(big, Flow) and isinstance(little, Flow):
            token = big.size_bytes == 64
            assert little.size_bytes == (64 if token else round(big.size_bytes / 10))
    first, second = small.meta["requests"]  # type: ignore[misc]
    assert (first["arrival_ns"], second["arrival_ns"]) == (500_000_000, 600_000_000)


def test_requests_go_round_clients_and_servers() -> None:
    """Each client and server gets its turn, in an order that the seed decides."""
    keys: dict[str, Any] = {
        "clients": 3,
        "servers": None,
        "prefill": 2,
        "decode": 4,
        "arrivals": {**ONE, "requests": 12},
    }
    rows = built(**keys).meta["requests"]
    assert isinstance(rows, list)
    for column, hosts in (
        ("client", {"h1", "h2", "h3"}),
        ("prefill", {"h4", "h5"}),
        ("decode", {"h6", "h7", "h8", "h9"}),
    ):
        seen = [row[column] for row in rows]
        assert set(seen) == hosts
        assert seen == (seen[: len(hosts)] * 12)[:12]
    assert rows == built(**keys).meta["requests"]
    assert any(built(seed=seed, **keys).meta["requests"] != rows for seed in range(5))


def test_named_hosts() -> None:
    """Lists say which hosts; the first half of the servers prefills."""
    workload = built(clients=["h9"], servers=["h2", "h7", "h5"])
    (row,) = workload.meta["requests"]  # type: ignore[misc]
    assert row["client"] == "h9"
    assert row["prefill"] in ("h2", "h7")
    assert row["decode"] == "h5"


def test_a_trace_beside_the_experiment_file(tmp_path: Path) -> None:
    """A relative file name is looked up in the folder of the experiment file."""
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44"
    (tmp_path / "conv.csv").write_text(text, encoding="utf-8")
    workload = built(folder=tmp_path, trace="conv.csv", arrivals=None)
    (row,) = workload.meta["requests"]  # type: ignore[misc]
    assert (row["context_tokens"], row["generated_tokens"], row["arrival_ns"]) == (374, 44, 0)


def test_prefills_of_a_server_queue() -> None:
    """Two prompts at once on one server: the second cache leaves one prefill later."""
    arrivals = {"process": "bursts", "burst": 2, "every": "1 s", "requests": 2}
    workload = built(mode="aggregated", servers=1, clients=2, arrivals=arrivals, tflops=1000)
    schedule = IdealNetwork().run(workload.tasks)
    spans = sorted(schedule.times()[t.id] for t in workload.tasks if t.tag.endswith("prefill"))
    assert spans[1][0] == spans[0][1]


def test_all_requests_are_answered() -> None:
    """In a network without loss every task of a service is done."""
    workload = built(arrivals={"process": "poisson", "rate": "5 /s", "requests": 5})
    assert IdealNetwork().run(workload.tasks).finished


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"servers": 1}, r"workloads\[1\].servers: 1 is too few for prefill and decode"),
        ({"clients": 15}, r"servers: 1 asks for more hosts than the 0 that are free of the 16"),
        ({"clients": ["h1"], "servers": ["h1", "h2"]}, "'h1' is already in another list"),
        ({"prefill": 1}, "excludes servers"),
        ({"arrivals": None}, "has neither trace nor arrivals"),
        ({"trace": "x.csv"}, "excludes trace"),
        ({"trace": "none.csv", "arrivals": None}, "none.csv: .*trace: .*cannot be read: No such"),
        ({"tflops": 0}, "tflops: 0.0 must be above 0"),
        ({"mfu": 2}, "mfu: 2 must be at most 1"),
        ({"slo": {"ttft": "0 s"}}, "slo.ttft: '0 s' must be above 0"),
        ({"channels": 0}, "channels: 0 must be at least 1"),
        ({"stream": "no"}, "stream: 'no' must be true or false"),
    ],
)
def test_impossible_services(keys: dict[str, Any], message: str) -> None:
    """Each wrong value is one error with its key path."""
    with pytest.raises(SpecError, match=message):
        built(**keys)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"model": "llama-3-70"}, r"model: 'llama-3-70' .*did you mean 'llama-3-70b'"),
        ({"mode": "split"}, "mode: 'split' is not a known mode"),
        ({"window": {"start": "1 s"}}, "'window' is not a known key"),
        ({"mode": "aggregated", "decode": 1}, "'decode' is not a known key"),
        ({"slo": {"itl": "1 s"}}, "slo.itl: 'itl' is not a known key"),
    ],
)
def test_unknown_names(keys: dict[str, Any], message: str) -> None:
    """Unknown names list the known ones; keys without effect are unknown."""
    with pytest.raises(UnknownNameError, match=message):
        built(**keys)


KV_BYTES = {
    "llama-3-8b": 131_072,
    "mixtral-8x7b": 131_072,
    "mistral-7b": 131_072,
    "llama-2-70b": 327_680,
    "llama-3-70b": 327_680,
    "qwen2.5-72b": 327_680,
    "llama-3.1-405b": 516_096,
    "llama-2-7b": 524_288,
    "llama-2-13b": 819_200,
    "gpt-3-175b": 4_718_592,
    "qwen2.5-7b": 57_344,
    "deepseek-v3": 70_272,
}


def test_key_value_cache_of_the_models() -> None:
    """Bytes per token in bf16 of every model, as published or from published dimensions."""
    assert {name: model.kv_bytes_per_token for name, model in MODELS.items()} == KV_BYTES


def test_a_model_of_ones_own() -> None:
    """A mapping gives parameters and cache size."""
    workload = built(model={"parameters": 1e9, "kv_bytes_per_token": "1 KiB"})
    assert flow(workload, "kv").size_bytes == 1000 * 1024


def test_70b_prefill_flop() -> None:
    """8192 tokens of a 70B model are 1.16 PFLOP."""
    assert MODELS["llama-3-70b"].prefill_flop(8192) == pytest.approx(1.156e15, rel=1e-3)
