"""A text in pieces: joined they are the text, whatever it is, and each fits."""

from hypothesis import given
from hypothesis import strategies as st

from pretrace.plugins.build.segmenting import cut_pieces, split_sentences


def characters(texts):
    return [len(text) for text in texts]


@given(st.text(st.sampled_from("ab .!\n\t。”\ud83d🙂"), max_size=80), st.integers(1, 20))
def test_pieces_are_the_text(text, limit):
    assert "".join(split_sentences(text)) == text
    made = cut_pieces(text, limit, characters)
    assert "".join(made) == text
    assert all(0 < len(piece) <= limit for piece in made)


def test_cut_at_sentence_ends_and_else_between_words():
    text = "One two. Three four. Five six seven eight nine."
    assert cut_pieces(text, 22, characters) == ["One two. Three four. ", "Five six seven eight ", "nine."]
    assert split_sentences("At 3.5 km. 今日は。元気？") == ["At 3.5 km. ", "今日は。", "元気？"]


def test_long_texts_take_no_time():
    for text in ("a" * 100_000, "a b " * 25_000, "\n" * 100_000, ". " * 50_000):
        made = cut_pieces(text, 100, characters)
        assert "".join(made) == text
        assert max(map(len, made)) <= 100
