"""Amazon: what a person ordered and reviewed, from the data request."""

from __future__ import annotations

from incrowd.crowd.readers.base import About, guess
from incrowd.crowd.readers.export import SKIP, Export, ExportPart, File, Row, header_of, pick

_COLUMNS = {"item": "Product Name", "time": "Order Date"}
_REVIEWS = {"text": "title and review", "time": "date"}
# Names move over the years: Retail.OrderHistory.1.csv became "Your Amazon Orders/Order History.csv"; reviews lie in
# Retail.CustomerReviews.ReviewsVersions1.csv, whose columns are written as one word.
_REVIEW = ("review text", "review body", "reviewtext", "reviewbody", "review", "body", "text")
_DATE = (
    "review date",
    "reviewdate",
    "submission date",
    "submissiondate",
    "reviewsubmissiondate",
    "creation date",
    "lastmodifieddate",
    "date",
)


def _is_orders(head: bytes) -> bool:
    names = header_of(head)
    return bool(names & {"order date", "orderdate"}) and bool(
        names & {"order id", "orderid"} and {"product name", "title"} & names
    )


def _is_reviews(head: bytes) -> bool:
    names = header_of(head)
    return (
        "asin" in names
        and bool(set(_REVIEW) & names)
        and bool(set(_DATE) & names)
        and "user" not in guess(list(names))  # a table of many people's reviews
    )


def _order(record: dict[str, str], owner: str) -> Row | object:
    if record.get("order status", "").lower() in ("cancelled", "canceled"):
        return SKIP
    return Row(item=pick(record, "product name", "title"), time=pick(record, "order date", "orderdate"))


def _review(record: dict[str, str], owner: str) -> Row:
    title = pick(record, "review title", "reviewtitle", "title", "headline")
    text = "\n\n".join(part for part in (title, pick(record, *_REVIEW)) if part)
    return Row(text=text, time=pick(record, *_DATE), id=pick(record, "review id", "reviewid"))


AMAZON = Export(
    name="amazon",
    about=About("Amazon data request", whose="own", columns=_COLUMNS, left="addresses, payments, searches"),
    parts=(
        ExportPart(
            knows=_is_orders,
            records=File.table,
            row=_order,
            files=r"Order ?History[^/]*\.csv$|Digital (Items|Content Orders)\.csv$",
            kind="items",
        ),
        ExportPart(
            knows=_is_reviews, records=File.table, row=_review, files=r"review[^/]*\.csv$", columns=_REVIEWS
        ),
    ),
    community="amazon.com",
)
