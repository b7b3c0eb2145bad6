"""Inference: requests that arrive in bursts, key-value caches that move, tokens that stream back.

Tasks of request n (tags ``qN.*``): the prompt to a prefill server; the prefill there, one at a
time; with ``disaggregated`` the key-value cache to a decode server; the decode there (continuous
batching: any number at a time), which sends one small message per token to the client. With
``aggregated`` the same server does both and no cache moves. A request for 0 tokens gets one empty
answer after its prefill.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from typing import TypedDict

from traffic.tasks import Compute, Flow, Task
from traffic.traces.azure import Request
from traffic.workloads.arrivals import peak_to_mean
from traffic.workloads.base import Context, Workload
from traffic.workloads.collectives import split_bytes
from traffic.workloads.inference_spec import KIND, InferenceSpec, read
from traffic.workloads.placement import place
from traffic.workloads.registry import Kind, register

PROMPT_BYTES_PER_TOKEN = 4
"""A token as text takes about four characters."""
TOKEN_MESSAGE_BYTES = 64
"""A streamed token with its framing; a packet anyway, so shrink leaves it as it is."""


class RequestMeta(TypedDict):
    """What becomes of one request; ids are those of its tasks.

    Attributes:
        request: number of the request, from 0.
        client: host that asks.
        prefill: host that takes the prompt.
        decode: host that generates the answer.
        context_tokens: length of the prompt.
        generated_tokens: length of the answer.
        arrival_ns: when it arrives, model time.
        kv: flows of the key-value cache; none when it does not move.
        first_token: flow of the first token; None when none is generated.
        end: flow of the last token, or of the empty answer.
    """

    request: int
    client: str
    prefill: str
    decode: str
    context_tokens: int
    generated_tokens: int
    arrival_ns: int
    kv: list[int]
    first_token: int | None
    end: int


class _Maker:
    """Turns requests into tasks."""

    def __init__(self, spec: InferenceSpec, context: Context) -> None:
        self._spec, self._context = spec, context
        self._ids = count(context.first_id)
        self._tpot_ns = context.shrunk_ns(spec.tpot_ns)
        self._start_ns = context.shrunk_ns(spec.start_ns)
        self._tag = ""
        self.tasks: list[Task] = []

    def add(self, number: int, request: Request, hosts: tuple[str, str, str]) -> RequestMeta:
        """Add the tasks of one request between a client, a prefill and a decode server."""
        client, prefill, decode = hosts
        self._tag = f"q{number}"
        arrival_ns = self._start_ns + self._context.shrunk_ns(request.arrival_ns)
        prefilled = self._prompt(request, client, prefill, arrival_ns)
        kv: list[int] = []
        if prefill != decode and request.generated_tokens and request.context_tokens:
            kv = self._cache(request, prefill, decode, prefilled)
        after = tuple(kv) or (prefilled,)
        if request.generated_tokens:
            ends = self._answer(request, client, decode, after)
        else:
            ends = [self._flow("end", prefill, client, TOKEN_MESSAGE_BYTES, after)]
        return RequestMeta(
            request=number,
            client=client,
            prefill=prefill,
            decode=decode,
            context_tokens=request.context_tokens,
            generated_tokens=request.generated_tokens,
            arrival_ns=arrival_ns,
            kv=kv,
            first_token=ends[0] if request.generated_tokens else None,
            end=ends[-1],
        )

    def _prompt(self, request: Request, client: str, prefill: str, arrival_ns: int) -> int:
        spec, tokens = self._spec, request.context_tokens
        size_bytes = self._context.shrunk_bytes(tokens * PROMPT_BYTES_PER_TOKEN)
        prompt = self._flow("prompt", client, prefill, size_bytes, (), start_ns=arrival_ns)
        seconds = spec.model.prefill_flop(tokens) / (spec.tflops * 1e12 * spec.mfu)
        resource = f"gpu:{spec.name}:{prefill}"
        return self._compute("prefill", resource, self._context.shrunk_ns(seconds * 1e9), (prompt,))

    def _cache(self, request: Request, prefill: str, decode: str, prefilled: int) -> list[int]:
        spec = self._spec
        total = request.context_tokens * spec.model.kv_bytes_per_token
        sizes = split_bytes(self._context.shrunk_bytes(total), spec.channels)
        return [
            self._flow(
                "kv" if spec.channels == 1 else f"kv.c{qp}", prefill, decode, size, (prefilled,), qp
            )
            for qp, size in enumerate(sizes)
            if size
        ]

    def _answer(
        self, request: Request, client: str, decode: str, after: tuple[int, ...]
    ) -> list[int]:
        """The decode and its token messages; token k leaves k + 1 decode steps after the start."""
        tokens = request.generated_tokens
        self._compute("decode", "", tokens * self._tpot_ns, after)
        sent: Sequence[int] = range(tokens)
        if not self._spec.stream:
            sent = sorted({0, tokens - 1})
        return [
            self._flow(
                f"t{token}",
                decode,
                client,
                TOKEN_MESSAGE_BYTES,
                after,
                delay_ns=(token + 1) * self._tpot_ns,
            )
            for token in sent
        ]

    def _flow(
        self,
        what: str,
        src: str,
        dst: str,
        size_bytes: int,
        after: tuple[int, ...],
        qp: int = 0,
        start_ns: int = 0,
        delay_ns: int = 0,
    ) -> int:
        spec, number = self._spec, next(self._ids)
        self.tasks.append(
            Flow(
                number, spec.name, src, dst, size_bytes, spec.dscp, f"{self._tag}.{what}",
                spec.plane, after, start_ns, delay_ns, qp,
            )
        )  # fmt: skip
        return number

    def _compute(self, what: str, resource: str, duration_ns: int, after: tuple[int, ...]) -> int:
        number = next(self._ids)
        tag = f"{self._tag}.{what}"
        self.tasks.append(Compute(number, self._spec.name, resource, duration_ns, tag, after))
        return number


def _assignments(spec: InferenceSpec, context: Context) -> Iterator[tuple[str, str, str]]:
    """Client, prefill and decode host of each request: round robin, each in an order by seed."""
    wanted = [spec.clients, *spec.servers.sets]
    rng = context.rng(spec, "placement")
    groups = [
        list(hosts) for hosts in place(context.fabric, spec.plane, spec.placement, wanted, rng)
    ]
    order = context.rng(spec, "assignment")
    for hosts in groups:
        order.shuffle(hosts)
    clients, prefill, decode = groups[0], groups[1], groups[-1]
    for number in count():
        yield (
            clients[number % len(clients)],
            prefill[number % len(prefill)],
            decode[number % len(decode)],
        )


def build(spec: InferenceSpec, context: Context) -> Workload:
    """The tasks of all requests, in the order of their arrival."""
    requests = spec.source.take(context.rng(spec, "arrivals"))
    maker = _Maker(spec, context)
    hosts = _assignments(spec, context)
    rows = [maker.add(number, request, next(hosts)) for number, request in enumerate(requests)]
    return Workload(spec.name, spec.kind, tuple(maker.tasks), _meta(spec, context, requests, rows))


def _meta(
    spec: InferenceSpec,
    context: Context,
    requests: Sequence[Request],
    rows: list[RequestMeta],
) -> dict[str, object]:
    return {
        "name": spec.name,
        "kind": spec.kind,
        "mode": spec.mode,
        "model": spec.model.name,
        "shrink": context.shrink,
        "tpot_ns": context.shrunk_ns(spec.tpot_ns),
        "slo_ttft_ns": spec.slo_ttft_ns,
        "slo_tpot_ns": spec.slo_tpot_ns,
        "peak_to_mean": peak_to_mean([request.arrival_ns for request in requests]),
        "first_id": context.first_id,
        "requests": rows,
    }


register(Kind(KIND, read, build))
