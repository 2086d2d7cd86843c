"""What scripts/bench/ask.py measures with: scoring as SQuAD does it, the naive pipeline, and the oracle model."""

import re
import string
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from libraryfs.ask.evidence import Evidence
from libraryfs.ask.retrieval import retrieve
from libraryfs.ask.sentences import words
from libraryfs.library.resolver import Library
from libraryfs.models.cancel import Cancel
from libraryfs.models.protocols import Embedder, LanguageModel, Message
from libraryfs.nodes import Entry

MAX_WORDS = 40
_PUNCTUATION = set(string.punctuation) | set("“”‘’«»…。，、；：？！（）《》〈〉「」")


class Scored(NamedTuple):
    """One answer: token F1 and whether it holds the gold answer, 0 to 1; its words; seconds; its cited ids."""

    f1: float
    contained: float
    words: int
    seconds: float
    cited: tuple[str, ...]


def normal(text: str) -> str:
    """Lower case, without punctuation, articles and spare spaces."""
    kept = "".join(" " if char in "-–—" else char for char in text.lower() if char not in _PUNCTUATION - set("-–—"))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def f1(answer: str, gold: str) -> float:
    """Harmonic mean of precision and recall of the answer's tokens."""
    got, wanted = normal(answer).split(), normal(gold).split()
    shared = sum((Counter(got) & Counter(wanted)).values())
    if not shared:
        return 0.0
    precision, recall = shared / len(got), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def score(answer: str, golds: Sequence[str], seconds: float, cited: Sequence[str]) -> Scored:
    """The figures of an answer, cut to MAX_WORDS as every answer here is."""
    cut = " ".join(answer.split()[:MAX_WORDS])
    held = any(normal(gold) in normal(cut) for gold in golds)
    return Scored(max(f1(cut, gold) for gold in golds), float(held), words(cut), seconds, tuple(cited))


class Naive:
    """The pipeline to beat: the five nearest whole texts in the prompt, and what the model says, unchecked.

    Of four wordings of the prompt the one that did best, by both figures, on the first 40 questions of XQuAD.
    """

    def __init__(self, library: Library, embedder: Embedder, model: LanguageModel) -> None:
        self.library = library
        self.embedder = embedder
        self.model = model

    def ask(self, question: str, scope: Entry) -> tuple[str, float, list[Evidence]]:
        """The answer, seconds, and the five sources that it was made from."""
        began = time.perf_counter()
        found = retrieve(self.library, self.embedder, question, [scope]).evidence[:5]
        texts = [self.library.content(self.library.entry(one.ino)).decode("utf-8", "replace") for one in found]
        messages: list[Message] = [
            {"role": "system", "content": "Answer the question from the context, as shortly as you can."},
            {"role": "user", "content": "\n\n".join(texts) + f"\n\nQuestion: {question}\nAnswer:"},
        ]
        reply = self.model.generate(messages, max_tokens=64, cancel=Cancel())
        return reply.text.strip(), time.perf_counter() - began, list(found)


class Oracle:
    """A stand-in for a strong model: it knows the gold answers, and cites. Shows what the pipeline lets through.

    It says the first gold answer when a shown text has it, else NOT FOUND; in the reading test it looks up the answers.
    """

    model = "oracle"
    context = 8192
    supports_likelihoods = False

    def __init__(self, golds: dict[str, Sequence[str]]) -> None:
        self.golds = golds

    def generate(self, messages: Sequence[Message], **options: Any) -> Any:
        """The reply; `on_text` gets it in one piece."""
        from libraryfs.ask.prompt import NOT_FOUND
        from libraryfs.models.protocols import Generation

        shown = messages[-1]["content"]
        question = shown.rsplit("Question: ", 1)[1].strip()
        text = NOT_FOUND
        for gold in self.golds.get(question, ()):
            for handle, body in re.findall(r'<evidence id="(E\d+)"[^>]*>\n(.*?)\n</evidence>', shown, re.DOTALL):
                if gold.lower() in body.lower():
                    text = f"{gold} [{handle}]"
                    break
        if options.get("on_text"):
            options["on_text"](text)
        return Generation(text, "stop", 0, 0)


class Knowing:
    """A stand-in for a strong model on the asked set: it says the sentences that answer where it is shown them.

    It cites the block that has the fragments, and says NOT FOUND where no shown block has one.
    """

    model = "knowing"
    context = 8192
    supports_likelihoods = False

    def __init__(self, rows: Sequence[dict[str, Any]]) -> None:
        from libraryfs.ask import exam

        self.rows = {row["question"]: row for row in rows}
        self.exam = {one.question: one.expected for one in exam.QUESTIONS}

    def generate(self, messages: Sequence[Message], **options: Any) -> Any:
        """The reply; `on_text` gets it in one piece."""
        from libraryfs.ask.prompt import NOT_FOUND
        from libraryfs.models.protocols import Generation

        shown = messages[-1]["content"]
        question = shown.rsplit("Question: ", 1)[1].strip()
        if question in self.exam:
            text = self.exam[question] or NOT_FOUND
        else:
            row = self.rows[question]
            blocks = re.findall(r'<evidence id="(E\d+)"[^>]*>\n(.*?)\n</evidence>', shown, re.DOTALL)
            plain = {handle: " ".join(body.casefold().split()) for handle, body in blocks}
            wanted = [" ".join(one.casefold().split()) for one in row["fragments"]]
            best = max(plain, key=lambda handle: sum(one in plain[handle] for one in wanted), default=None)
            knows = best is not None and any(one in plain[best] for one in wanted)
            text = f"{row['quote']} [{best}]" if knows else NOT_FOUND
        if options.get("on_text"):
            options["on_text"](text)
        return Generation(text, "stop", 0, 0)
