"""How the worker picks the next token: the best one at temperature 0, else by chance with a seed; inside a JSON grammar
when there is a schema."""

from __future__ import annotations

import contextlib
import ctypes
import json
import signal
from collections.abc import Iterator
from typing import Any, Final

import llama_cpp
import numpy as np
from llama_cpp.llama_grammar import LlamaGrammar

from libraryfs.errors import InvalidRequest

TOP_K, TOP_P, MIN_P = 40, 0.95, 0.05
"""Which tokens chance may choose from, above temperature 0: llama.cpp's own defaults."""

MOST_REPEATED: Final = 500
"""A grammar repeats a rule this often at most: llama.cpp writes each repetition out, and refuses 2,000."""
GRAMMAR_SECONDS: Final = 3.0
"""Processor time that a schema may take to become a grammar; 400 properties take half a second. The converter goes
round for ever on some patterns (`^}$`)."""


class Sampler:
    """Picks tokens from a context's last logits."""

    def __init__(self, context: Any, vocabulary: Any, vocabulary_size: int, chain: Any, grammar: Any) -> None:
        self._context = context
        self._chain = chain
        self._grammar = grammar
        self._size = vocabulary_size
        self._everything: Any = None

    def next(self) -> int:
        """The next token.

        A grammar is first asked about the token that the model wants, and only when it forbids that one about all of
        the vocabulary: most tokens cost one check and not fifty thousand.
        """
        token = int(llama_cpp.llama_sampler_sample(self._chain, self._context, -1))
        if self._grammar is None:
            return token
        if not self._allowed(token):
            token = self._best_allowed()
        llama_cpp.llama_sampler_accept(self._grammar, token)
        return token

    def _allowed(self, token: int) -> bool:
        one = (llama_cpp.llama_token_data * 1)((token, 1.0, 0.0))
        candidates = llama_cpp.llama_token_data_array(one, 1, -1, False)
        llama_cpp.llama_sampler_apply(self._grammar, ctypes.byref(candidates))
        return bool(one[0].logit > -np.inf)

    def _best_allowed(self) -> int:
        logits = llama_cpp.llama_get_logits_ith(self._context, -1)
        if self._everything is None:
            self._everything = (llama_cpp.llama_token_data * self._size)()
        table = np.ctypeslib.as_array(self._everything)
        table["id"] = np.arange(self._size)
        table["logit"] = np.ctypeslib.as_array(logits, shape=(self._size,))
        table["p"] = 0.0
        candidates = llama_cpp.llama_token_data_array(self._everything, self._size, -1, False)
        llama_cpp.llama_sampler_apply(self._grammar, ctypes.byref(candidates))
        llama_cpp.llama_sampler_apply(self._chain, ctypes.byref(candidates))
        return int(candidates.data[candidates.selected].id)


@contextlib.contextmanager
def sampler(
    context: Any, vocabulary: Any, *, temperature: float, seed: int, schema: dict[str, Any] | None
) -> Iterator[Sampler]:
    """A sampler for one reply. Raises InvalidRequest for a schema that a grammar cannot express."""
    grammar = None if schema is None else _grammar(vocabulary, schema)
    chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
    try:
        for part in _parts(temperature, seed):
            llama_cpp.llama_sampler_chain_add(chain, part)
        yield Sampler(context, vocabulary, llama_cpp.llama_vocab_n_tokens(vocabulary), chain, grammar)
    finally:
        llama_cpp.llama_sampler_free(chain)
        if grammar is not None:
            llama_cpp.llama_sampler_free(grammar)


def _parts(temperature: float, seed: int) -> list[Any]:
    if temperature <= 0:
        return [llama_cpp.llama_sampler_init_greedy()]
    return [
        llama_cpp.llama_sampler_init_top_k(TOP_K),
        llama_cpp.llama_sampler_init_top_p(TOP_P, 1),
        llama_cpp.llama_sampler_init_min_p(MIN_P, 1),
        llama_cpp.llama_sampler_init_temp(temperature),
        llama_cpp.llama_sampler_init_dist(seed & 0xFFFFFFFF),
    ]


def _grammar(vocabulary: Any, schema: dict[str, Any]) -> Any:
    try:
        _refuse_remote(schema)
        with _time_limit():
            text = _as_json(LlamaGrammar.from_json_schema(json.dumps(_repeatable(schema)), verbose=False)._grammar)
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError, RecursionError, TimeoutError) as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise InvalidRequest(f"schema: the model cannot be held to it: {reason}") from None
    grammar = llama_cpp.llama_sampler_init_grammar(vocabulary, text.encode(), b"root")
    if not grammar:
        raise InvalidRequest("schema: the model cannot be held to it: llama.cpp refuses the grammar made from it")
    return grammar


def _as_json(grammar: str) -> str:
    """The grammar without strings that JSON does not allow: the converter lets control characters stand unescaped, and
    a dot in a pattern stand for a quotation mark."""
    for rule, converted in (("char", r'[^"\\] |'), ("dot", r"[^\x0A\x0D]")):
        allowed = r'[^"\\\x00-\x1F\x7F]' + (" |" if rule == "char" else "")
        grammar = grammar.replace(f"{rule} ::= {converted}", f"{rule} ::= {allowed}")
    return grammar


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    """Raises TimeoutError in the block after GRAMMAR_SECONDS. In the main thread only, where the worker computes."""

    def late(*_: Any) -> None:
        raise TimeoutError("it takes too long to make a grammar from it; is there a pattern that can be simpler?")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, GRAMMAR_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _repeatable(schema: Any) -> Any:
    """The schema without upper bounds that a grammar cannot count to: the answer is validated against them later."""
    if isinstance(schema, list):
        return [_repeatable(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for key, value in schema.items():
        large = isinstance(value, int | float) and value > MOST_REPEATED
        if large and key in ("minLength", "minItems"):
            raise ValueError(f"{key} is over {MOST_REPEATED}")
        if not (large and key in ("maxLength", "maxItems")):
            kept[key] = value if key in ("const", "enum") else _repeatable(value)
    return kept


def _refuse_remote(schema: Any) -> None:
    """Every `$ref` must stay inside the schema: nothing is ever fetched."""
    if isinstance(schema, dict):
        reference = schema.get("$ref", "#")
        if isinstance(reference, str) and not reference.startswith("#"):
            raise ValueError(f"$ref {reference!r} points outside of the schema")
        schema = list(schema.values())
    if isinstance(schema, list):
        for part in schema:
            _refuse_remote(part)
