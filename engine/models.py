"""How is a language model asked, and what may that cost?

Any endpoint that speaks `POST …/chat/completions`: OpenAI, Ollama, vLLM, LM Studio. An answer is
JSON of a shape that was asked for, or it is a failure: whoever asks decides what to do then. What
a model says is data from outside, and is read with the same suspicion as a request. `ask` waits
for the whole of it; `listen` gives the words of one field while they are said.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Final, Generic, Literal, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from engine.clock import Clock
from engine.hearing import Hearing, Unheard
from schemas import limits

Shape = TypeVar("Shape")

_FORMATS: Final = ("json_schema", "json_object", "none")
"""How an endpoint is asked for JSON, from the strictest on; some know only the later ones."""

_STREAMED: Final = tuple((form, counts) for form in _FORMATS for counts in (True, False))
"""The same for a stream, which not every endpoint can be asked to end with the count of tokens."""

_NO_FORMAT: Final = frozenset({400, 404, 415, 422, 501})
"""What endpoints answer to a `response_format` they do not know."""

_AWAY: Final = frozenset({401, 402, 403, 404, 407, 408, 409, 425, 429})
"""Client errors that are about the endpoint or the account, and not about this question."""

_THOUGHTS: Final = re.compile(r"<think>.*?</think>", re.DOTALL)
_OUTER_OBJECT: Final = re.compile(r"\{.*\}", re.DOTALL)


Failure = Literal["away", "refused", "unusable"]
"""The endpoint does not answer now; it will not answer this; what it answered is of no use."""


class ModelFailed(Exception):
    """There is no answer that can be used, and why."""

    def __init__(self, kind: Failure, reason: str, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.reason = reason
        self.retry_after_s = retry_after_s


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What to ask: the instruction, the data it is about, and the JSON Schema of the answer."""

    name: str
    instruction: str
    data: str
    schema: dict[str, Any]
    tokens_max: int = limits.MODEL_ANSWER_TOKENS_MAX


class Answer(msgspec.Struct, Generic[Shape], frozen=True):
    """What the model said, and which version of it spoke."""

    value: Shape
    version: str


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    total_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    system_fingerprint: str | None = None
    usage: _Usage | None = None


class Budget:
    """Tokens that may be spent in a minute. Pure arithmetic: time is an argument."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = float(per_minute)
        self._left = float(per_minute)
        self._at_s = 0.0

    def spend(self, tokens: int, now_s: float) -> float:
        """Take so many, on credit where there are none left; how long to wait before using them."""
        gained = max(0.0, now_s - self._at_s) * self._per_minute / 60
        self._left = min(self._per_minute, self._left + gained) - tokens
        self._at_s = now_s
        return max(0.0, -self._left * 60 / self._per_minute)

    def correct(self, tokens: int) -> None:
        """So many were taken and not used; below zero, so many more were used."""
        self._left = min(self._per_minute, self._left + tokens)


class Model:
    """One model behind one endpoint. Belongs to one event loop."""

    def __init__(
        self,
        url: str,
        name: str,
        key: str | None,
        clock: Clock,
        *,
        call_s: float = limits.MODEL_S_MAX,
        retry_s: float = limits.MODEL_RETRY_S,
        calls: int = limits.MODEL_CALLS_MAX,
    ) -> None:
        self.name = name
        self.host = urlsplit(url).netloc.rpartition("@")[2]
        self._url = url.rstrip("/") + "/chat/completions"
        self._key = key
        self._clock = clock
        self._call_s = call_s
        self._retry_s = retry_s
        self.calls = calls
        self._slots = asyncio.Semaphore(calls)
        self._budget = Budget(limits.MODEL_TOKENS_PER_MINUTE)
        self._format = _FORMATS[0]
        self._streamed = _STREAMED[0]
        # Made once: reading the certificate authorities takes longer than everything else here.
        tls: ssl.SSLContext | Literal[False] = (
            httpx.create_ssl_context() if url.startswith("https:") else False
        )
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._client = httpx.AsyncClient(
            headers=headers, timeout=self._call_s, verify=tls, follow_redirects=False
        )

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()

    async def ask(self, question: Question, shape: type[Shape]) -> Answer[Shape]:
        """Ask, and again a few times while there is hope; ModelFailed when there is none."""
        began_s, tries = self._clock.elapsed_s(), 0
        while True:
            tries += 1
            try:
                async with self._slots:
                    return await self._ask_once(question, shape)
            except ModelFailed as failed:
                await self._rest(failed, tries, began_s)

    async def listen(
        self, question: Question, shape: type[Shape], field: str
    ) -> AsyncGenerator["str | Answer[Shape]", None]:
        """The words of one field while they are said, and then the whole answer.

        ModelFailed when there is no hope, as with `ask`; once a word was said, there is none: to
        ask again would mean to say another thing.
        """
        began_s, tries, is_begun = self._clock.elapsed_s(), 0, False
        while True:
            tries += 1
            try:
                async with (
                    self._slots,
                    aclosing(self._listen_once(question, shape, field)) as told,
                ):
                    async for piece in told:
                        is_begun = True
                        yield piece
                    return
            except ModelFailed as failed:
                if is_begun:
                    raise
                await self._rest(failed, tries, began_s)

    async def _rest(self, failed: ModelFailed, tries: int, began_s: float) -> None:
        """Wait before another try, or give up."""
        rest_s = failed.retry_after_s or self._retry_s * 2 ** (tries - 1)
        spent_s = self._clock.elapsed_s() - began_s + rest_s
        is_over = tries >= limits.MODEL_TRIES or spent_s > self._call_s
        if is_over or failed.kind == "refused":
            raise failed
        await asyncio.sleep(rest_s)

    # ── one question ─────────────────────────────────────────────────────────────────────────

    async def _ask_once(self, question: Question, shape: type[Shape]) -> Answer[Shape]:
        estimate = await self._afford(question)
        try:
            completion = await self._complete(question)
        except ModelFailed:
            self._budget.correct(estimate)  # what did not answer did not count
            raise
        if completion.usage is not None and completion.usage.total_tokens is not None:
            self._budget.correct(estimate - completion.usage.total_tokens)
        return self._answer(completion, shape)

    async def _afford(self, question: Question) -> int:
        """Take the tokens that a question may cost, when there are so many again."""
        estimate = _tokens(question)
        wait_s = self._budget.spend(estimate, self._clock.elapsed_s())
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        return estimate

    def _answer(self, completion: _Completion, shape: type[Shape]) -> Answer[Shape]:
        value = _read(completion, shape)
        version = completion.system_fingerprint or completion.model or self.name
        return Answer(value, version[: limits.NAME_CHARS_MAX])

    async def _complete(self, question: Question) -> _Completion:
        """The endpoint's answer, in the strictest form it knows; that is remembered."""
        forms = _FORMATS[_FORMATS.index(self._format) :]
        for form in forms:
            status, content, retry_after = await self._post(_request(self.name, question, form))
            if status == 200:
                self._format = form
                return _completion(content)
            if status not in _NO_FORMAT or form == forms[-1]:
                raise self._refused(status, content, retry_after)
        raise AssertionError("the last form answers or fails")

    async def _post(self, body: dict[str, Any]) -> tuple[int, bytes, str | None]:
        # An endpoint that drips a byte a second keeps every single read in time.
        async with (
            self._reached(self._call_s, f"no answer in {self._call_s:g} seconds"),
            self._client.stream("POST", self._url, json=body) as response,
        ):
            content = await _content(response)
            return response.status_code, content, response.headers.get("retry-after")

    @asynccontextmanager
    async def _reached(self, seconds: float, or_else: str) -> AsyncIterator[None]:
        """So long for what is done here; whatever the network does is a ModelFailed."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise ModelFailed("away", or_else) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            reason = f"{self.host} cannot be reached: {type(error).__name__}"
            raise ModelFailed("away", reason) from error

    def _refused(self, status: int, content: bytes, retry_after: str | None) -> ModelFailed:
        said = self._masked(content[:200].decode(errors="replace"))
        is_away = status >= 500 or status in _AWAY
        return ModelFailed(
            "away" if is_away else "refused",
            f"{self.host} answered {status}: {' '.join(said.split())}",
            _seconds(retry_after),
        )

    def _masked(self, said: str) -> str:
        return said.replace(self._key, "***") if self._key else said

    # ── one stream ───────────────────────────────────────────────────────────────────────────

    async def _listen_once(
        self, question: Question, shape: type[Shape], field: str
    ) -> AsyncGenerator["str | Answer[Shape]", None]:
        estimate, hearing = await self._afford(question), Hearing(field)
        try:
            async with aclosing(self._heard(question, hearing)) as pieces:
                async for words in pieces:
                    yield words
            if hearing.body is None:
                version = hearing.version or self.name
                yield Answer(hearing.value(shape), version[: limits.NAME_CHARS_MAX])
                return
            completion = _completion(bytes(hearing.body))
            hearing.chars = len(hearing.body)
            hearing.tokens = None if completion.usage is None else completion.usage.total_tokens
            answer = self._answer(completion, shape)
            yield getattr(answer.value, field)
            yield answer
        except Unheard as error:
            raise ModelFailed(error.kind, self._masked(error.reason)) from error
        finally:
            self._budget.correct(estimate - _spent(question, hearing))

    async def _heard(self, question: Question, hearing: Hearing) -> AsyncGenerator[str, None]:
        """Words while they come, as long as they come; leaving this hangs up."""
        began_s = self._clock.elapsed_s()
        response = await self._opened(question, began_s)
        try:
            pieces = response.aiter_bytes()
            while not (hearing.is_whole or hearing.is_over):
                async with self._reached(*self._left(began_s, is_begun=hearing.has_words)):
                    piece = await anext(pieces, None)
                words = hearing.end() if piece is None else hearing.feed(piece)
                if words:
                    yield words
            # The count of tokens comes last, and an answer that is whole can do without it.
            with suppress(ModelFailed, Unheard):
                async with self._reached(limits.MODEL_TAIL_S, "no count of tokens"):
                    while not hearing.is_over:
                        piece = await anext(pieces, None)
                        hearing.end() if piece is None else hearing.feed(piece)
        finally:
            await response.aclose()

    def _left(self, began_s: float, *, is_begun: bool) -> tuple[float, str]:
        """Seconds until something must come, and what it means when nothing does.

        Who reads slowly takes of them too: a stream holds a place that others wait for.
        """
        spent_s = self._clock.elapsed_s() - began_s
        if not is_begun:
            return self._call_s - spent_s, f"no answer in {self._call_s:g} seconds"
        stall_s = min(limits.MODEL_STALL_S, self._call_s)
        whole_s = self._call_s * limits.MODEL_STREAM_TIMES
        if whole_s - spent_s < stall_s:
            return whole_s - spent_s, f"no end in {whole_s:g} seconds"
        return stall_s, f"nothing more in {stall_s:g} seconds"

    async def _opened(self, question: Question, began_s: float) -> httpx.Response:
        """The beginning of a stream, in the strictest form that the endpoint knows."""
        known = _FORMATS.index(self._format)
        forms = [
            form
            for form in _STREAMED[_STREAMED.index(self._streamed) :]
            if _FORMATS.index(form[0]) >= known
        ]
        for form in forms:
            body = _request(self.name, question, form[0]) | {"stream": True}
            if form[1]:
                body["stream_options"] = {"include_usage": True}
            # What is compressed waits for more of it.
            headers = {"Accept-Encoding": "identity"}
            request = self._client.build_request("POST", self._url, json=body, headers=headers)
            async with self._reached(*self._left(began_s, is_begun=False)):
                response = await self._client.send(request, stream=True)
                if response.status_code == 200:
                    self._streamed = form
                    return response
                async with aclosing(response):
                    content = await _content(response)
            if response.status_code not in _NO_FORMAT or form == forms[-1]:
                retry_after = response.headers.get("retry-after")
                raise self._refused(response.status_code, content, retry_after)
        raise AssertionError("the last form answers or fails")


# ── words out, words in ──────────────────────────────────────────────────────────────────────


def fenced(text: str, nonce: str) -> str:
    """Text as data: nothing in it can end the fence, for nobody could know the nonce."""
    return f"<data-{nonce}>\n{text}\n</data-{nonce}>"


def _request(model: str, question: Question, form: str) -> dict[str, Any]:
    schema = msgspec.json.encode(question.schema).decode()
    body: dict[str, Any] = {
        "model": model,
        "messages": [
            {
                "role": "system",
                "content": f"{question.instruction}\nAnswer with one JSON object of this schema, "
                f"and nothing else:\n{schema}",
            },
            {"role": "user", "content": question.data},
        ],
        "temperature": 0,
        "max_tokens": question.tokens_max,
        "stream": False,
    }
    if form == "json_schema":
        wanted = {"name": question.name, "strict": True, "schema": question.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": wanted}
    elif form == "json_object":
        body["response_format"] = {"type": "json_object"}
    return body


def _completion(content: bytes) -> _Completion:
    try:
        return msgspec.json.decode(content, type=_Completion)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ModelFailed("unusable", f"no chat completion: {error}") from error


async def _content(response: httpx.Response) -> bytes:
    content = b""
    async for chunk in response.aiter_bytes():
        content += chunk
        if len(content) > limits.MODEL_ANSWER_BYTES_MAX:
            reason = f"more than {limits.MODEL_ANSWER_BYTES_MAX} bytes of answer"
            raise ModelFailed("unusable", reason)
    return content


def _read(completion: _Completion, shape: type[Shape]) -> Shape:
    """The answer as the shape that was asked for."""
    choice = completion.choices[0] if completion.choices else None
    if choice is None or choice.message.content is None:
        refusal = choice.message.refusal if choice is not None else None
        raise ModelFailed("unusable", "the model refused" if refusal else "an empty answer")
    if choice.finish_reason == "length":
        raise ModelFailed("unusable", "the answer was cut off")
    # Some think aloud first, some put JSON into a code block; what is outermost is the answer.
    found = _OUTER_OBJECT.search(_THOUGHTS.sub("", choice.message.content))
    if found is None:
        raise ModelFailed("unusable", "the answer is no JSON object")
    try:
        return msgspec.json.decode(found[0], type=shape)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ModelFailed("unusable", f"not what was asked for: {error}"[:300]) from error


def _tokens(question: Question) -> int:
    """What a question may cost, at four characters a token, with its longest answer."""
    return (len(question.instruction) + len(question.data)) // 4 + question.tokens_max


def _spent(question: Question, hearing: Hearing) -> int:
    """What a stream did cost: as it said, or as much as was said; one without words costs none."""
    if hearing.tokens is not None:
        return hearing.tokens
    sent = len(question.instruction) + len(question.data)
    return (sent + hearing.chars) // 4 if hearing.chars else 0


def _seconds(retry_after: str | None) -> float | None:
    try:
        return max(0.0, float(retry_after)) if retry_after is not None else None
    except ValueError:
        return None
