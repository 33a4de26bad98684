"""A model that gives text alone, for tests: a function from a prompt to an answer."""

from pretrace.testing import FakeBackend
from pretrace.types import Written


class Answering(FakeBackend):
    """It answers each prompt by a function, as chat completions or as completions do."""

    def __init__(self, answer, *, chats=False, name="answering"):
        super().__init__(name=name)
        self.fingerprint += name
        self.answer, self.chats = answer, chats

    def continued(self, prompts, draws, progress, /):
        return [[Written(self.answer(prompt)) for _ in draws] for prompt in prompts]
