"""A person's own words, out of mail and HTML."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incrowd.crowd.readers.base import html_text
from incrowd.crowd.readers.mbox import own_subject, own_words


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("Plain words.\n", "Plain words."),
        ("> quoted\nAnswer", "Answer"),
        ("JD> quoted\nAnswer", "Answer"),
        ("On Tue, 1 Jan 2002, Jo wrote:\n> quoted\n\nAnswer", "Answer"),
        ("On Tue, 1 Jan 2002 at 10:00,\nJo Doe <jo@example.org>\nwrote:\n\n> quoted\nAnswer", "Answer"),
        ("Am 01.01.2002 schrieb Jo:\n> quoted\nAntwort", "Antwort"),
        ("Le mar. 1 janv. 2002, Jo a écrit :\n> cité\nRéponse", "Réponse"),
        ("jo@example.org writes:\n> quoted\nAnswer", "Answer"),
        ("Top post.\n\nOn 1 Jan 2002, Jo wrote:\n> everything", "Top post."),
        ("Words\n-- \nName\nCompany", "Words"),
        ("Words\n--\nName", "Words"),
        ("Words\n" + "_" * 47 + "\nlist mailing list\nhttp://example.org", "Words"),
        ("Words\n-----Original Message-----\nFrom: Jo\nold", "Words"),
        (
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA1\n\nWords\n"
            "-----BEGIN PGP SIGNATURE-----\niQ\n-----END PGP SIGNATURE-----",
            "Words",
        ),
        ("As my mother wrote:\nbe kind", "As my mother wrote:\nbe kind"),
        ("a - b -- c\n--- cut here ---\nd", "a - b -- c\n--- cut here ---\nd"),
        ("One\n\n\n\nTwo\r\n", "One\n\nTwo"),
        ("x > y is true", "x > y is true"),
        ("", ""),
    ],
)
def test_only_what_the_author_typed_is_kept(body: str, words: str) -> None:
    assert own_words(body) == words


@pytest.mark.parametrize(
    ("subject", "own"),
    [
        ("[tea] Hello", "Hello"),
        ("Re: Hello", ""),
        ("[tea] AW: Hello", ""),
        ("Regarding tea", "Regarding tea"),
        ("", ""),
    ],
)
def test_the_subject_of_a_reply_is_someone_elses(subject: str, own: str) -> None:
    assert own_subject(subject) == own


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<p>One</p><p>Two</p>", "One\nTwo"),
        ("a<br/>b<BR>c", "a\nb\nc"),
        ("1 &lt; 2 &amp;amp; <b>bold</b>", "1 < 2 &amp; bold"),
        ("<blockquote>a<blockquote>b</blockquote>c</blockquote>mine", "mine"),
        ("<p>x</p><pre><code>code</code></pre><p>use <code>y</code></p>", "x\nuse y"),
        ("<!-- note -->x<script>alert(1)</script>", "x"),
        ("a < b and b > a", "a < b and b > a"),
        ('<a href="x">link</a>', "link"),
        ("no tags &eacute;", "no tags é"),
        ("<blockquote>never closed", ""),
        ("", ""),
    ],
)
def test_html_becomes_the_text_a_reader_sees(markup: str, text: str) -> None:
    assert html_text(markup) == text


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='<>/!-pbqre "=&;x\n', max_size=60))
def test_any_markup_and_any_mail_is_survived(text: str) -> None:
    assert isinstance(html_text(text), str)
    assert isinstance(own_words(text), str)


@pytest.mark.parametrize(
    "hostile", ["<", "<!--", "<a ", "</", "&", "wrote:", "On 1 ", "> ", "-", "_", " \n", "<b>", "[re"]
)
def test_hostile_text_takes_time_in_proportion_to_its_length(hostile: str) -> None:
    """With time that grows as the square of the length, this would run for hours."""
    for words in (html_text, own_words, own_subject):
        assert len(words(hostile * 200_000)) <= len(hostile) * 200_000
