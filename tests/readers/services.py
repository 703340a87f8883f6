"""Tiny exports of services, in their real layouts; everybody in them is made up."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from incrowd.crowd.readers import ReadOptions

Make = Callable[..., Any]


def js(value: object) -> bytes:
    return json.dumps(value).encode()


def csv(*lines: str, bom: bool = False) -> bytes:
    return (b"\xef\xbb\xbf" if bom else b"") + ("\n".join(lines) + "\n").encode()


def telegram(*, whole: bool) -> bytes:
    messages = [
        {"id": 1, "type": "service", "date": "2021-01-01T12:00:00", "actor": "Ann", "action": "create_group"},
        {"id": 2, "type": "message", "date": "2021-01-01T12:00:00", "date_unixtime": "1609502400", "from": "Ann",
         "from_id": "user7", "text": "Green, please."},
        {"id": 3, "type": "message", "date": "2021-01-01T12:01:00", "date_unixtime": "1609502460", "from": "Bob",
         "from_id": "user8", "text": "Never."},
        {"id": 5, "type": "message", "date": "2021-01-01T12:02:00", "date_unixtime": "1609502520", "from": "Ann",
         "from_id": "user7", "forwarded_from": "Bob", "text": "Never."},
        {"id": 4, "type": "message", "date": "2021-01-01T12:02:00", "date_unixtime": "1609502520", "from": "Ann",
         "from_id": "user7", "text": ["See ", {"type": "link", "text": "tea.example"}, "!"]},
    ]  # fmt: skip
    chat = {"name": "tea", "type": "private_group", "id": 99, "messages": messages}
    if not whole:
        return js(chat)
    me = {"user_id": 7, "first_name": "Ann", "username": "@ann"}
    contacts = {
        "about": "z",
        "list": [{"user_id": n, "first_name": "Bob", "phone_number": "1"} for n in range(2000)],
    }
    person = {"name": "Bob", "type": "personal_chat", "id": 8, "messages": [{**messages[1], "id": 9}]}
    return js({"about": "x", "personal_information": me, "contacts": contacts,
               "chats": {"about": "y", "list": [chat]}, "left_chats": {"about": "y", "list": [person]}})  # fmt: skip


def cbor(value: object) -> bytes:
    def head(major: int, size: int) -> bytes:
        if size < 24:
            return bytes([major << 5 | size])
        return (
            bytes([major << 5 | 24, size])
            if size < 256
            else bytes([major << 5 | 25]) + size.to_bytes(2, "big")
        )

    if value is None:
        return b"\xf6"
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return b"\xd8\x2a" + head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    assert isinstance(value, dict)
    return head(5, len(value)) + b"".join(cbor(key) + cbor(one) for key, one in value.items())


def car(first: object = None, *, node_first: bool = False) -> bytes:
    cid = b"\x01\x71\x12\x20" + bytes(range(32))

    def block(data: bytes) -> bytes:
        size = len(data)
        return bytes([size & 127 | 128, size >> 7]) + data if size > 127 else bytes([size]) + data

    post = {"$type": "app.bsky.feed.post", "text": "Green, please.", "createdAt": "2021-01-01T12:00:00.000Z"}
    like = {"$type": "app.bsky.feed.like", "createdAt": "2021-01-01T12:00:00.000Z"}
    commit = {"did": "did:plc:abcdefghijklmnopqrstuvwx", "version": 3}
    like_name, post_name = b"app.bsky.feed.like/3kaaa", b"app.bsky.feed.post/3kbbb"
    shared = len(b"app.bsky.feed.")
    node = {
        "l": None,
        "e": [
            {"p": 0, "k": like_name, "v": b"\x00" + b"\x00" * 36, "t": None},
            {"p": shared, "k": post_name[shared:], "v": b"\x00" + cid, "t": None},
        ],
    }
    header = cbor({"roots": [b"\x00" + cid], "version": 1})
    return block(header) + b"".join(
        block(cid + cbor(one))
        for one in (
            *([first] if first else []),
            commit,
            *([node, like, post] if node_first else [like, post, node]),
        )
    )


def workbook(zipped: Make) -> bytes:
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    strings = ["author", "text", "date", "ann", "Hello"]
    shared = "".join(f"<si><t>{text}</t></si>" for text in strings)
    sheet = (
        '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1" t="s"><v>2</v></c></row>'
        '<row r="2"><c r="A2" t="s"><v>3</v></c><c r="B2" t="s"><v>4</v></c><c r="C2"><v>44197.5</v></c></row>'
    )
    result: bytes = zipped(
        {
            "[Content_Types].xml": b"<Types/>",
            "xl/workbook.xml": f"<workbook {main}/>".encode(),
            "xl/sharedStrings.xml": f"<sst {main}>{shared}</sst>".encode(),
            "xl/worksheets/sheet1.xml": f"<worksheet {main}><sheetData>{sheet}</sheetData></worksheet>".encode(),
        }
    )
    return result


def database() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.db"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE notes (author TEXT, text TEXT, time INTEGER)")
        connection.execute("INSERT INTO notes VALUES ('ann', 'Hello', 1609502400), ('bob', NULL, 1609502400)")
        connection.execute("CREATE TABLE other (colour TEXT)")
        connection.commit()
        connection.close()
        return path.read_bytes()


JESTER = "\n".join(
    [",".join(["2", "-7.82", "99", "8.79", *["99"] * 9]), ",".join(["1", "99", "0.5", "99", *["99"] * 9])]
)
WXR = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:wp="http://wordpress.org/export/1.2/"><channel><title>A blog</title>
<item><title>Tea</title><dc:creator>ann</dc:creator><pubDate>Fri, 01 Jan 2021 12:00:00 +0000</pubDate>
<guid>https://b.example/?p=1</guid><content:encoded><![CDATA[<p>Green, please.</p>]]></content:encoded>
<wp:status>publish</wp:status><wp:post_type>post</wp:post_type>
<wp:comment><wp:comment_author>bob</wp:comment_author><wp:comment_content>Never.</wp:comment_content></wp:comment></item>
<item><title>Draft</title><dc:creator>ann</dc:creator><wp:status>draft</wp:status><wp:post_type>post</wp:post_type></item>
</channel></rss>"""
ATOM = """<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>A blog</title><entry><title>Tea</title>
<author><name>ann</name></author><id>e1</id><published>2021-01-01T12:00:00Z</published>
<content type="html">&lt;p&gt;Green, please.&lt;/p&gt;</content></entry></feed>"""
STEAM_XML = """<?xml version="1.0"?><gamesList><steamID64>7</steamID64><steamID><![CDATA[ann]]></steamID><games>
<game><appID>1</appID><name><![CDATA[Chess]]></name><hoursOnRecord>1,200.5</hoursOnRecord></game>
</games></gamesList>"""
TUMBLR_PAGE = """<!DOCTYPE HTML><html><head><title>x</title></head><body><h1>Tea</h1><p>Green, please.</p>
<div id="footer"><span id="timestamp"> January 1st, 2021 12:00pm </span></div></body></html>"""
WATCHED_PAGE = """<html><head><title>My Activity History</title><style>.mdl-typography{x:y}</style></head><body>
<div class="outer-cell mdl-cell"><div class="header-cell"><p class="mdl-typography--title">YouTube<br></p></div><div
class="content-cell mdl-cell">Watched <a href="https://www.youtube.com/watch?v=1">Kettles &amp; cups</a><br><a
href="https://www.youtube.com/channel/C">Cups</a><br>Jan 1, 2021, 12:00:00\u202fPM UTC<br></div></div>
<div class="outer-cell mdl-cell"><div class="content-cell mdl-cell">Watched a video that has been removed<br>
Jan 1, 2021, 12:00:00 PM UTC<br></div></div></body></html>""".replace("<a\n", "<a ").replace(
    "<div\n", "<div "
)
NOON = 1609502400
SAID = "Green, please."


def examples(posts: Make, items: Make, attributes: Make, zipped: Make, Example: Make) -> list[Any]:
    """Return an example of every service."""

    def post(
        user: str,
        community: str,
        id: str | None = None,
        row: int = 1,
        time: int | None = NOON,
        text: str = SAID,
    ) -> Any:
        return posts((row, id, user, community, time, text))

    def item(
        name: str, value: float | None = None, time: int | None = NOON, row: int = 1, user: str = "me"
    ) -> Any:
        return items((row, None, user, name, value, time))

    ann = ReadOptions(user="Ann")
    facebook_post = [
        {
            "timestamp": NOON,
            "data": [{"post": "Gr\u00c3\u00bcn, please."}],
            "title": "Ann updated her status.",
        },
        {"timestamp": NOON, "attachments": [], "title": "Ann added a photo."},
    ]
    comment = {"timestamp": NOON, "comment": SAID, "author": "Ann", "group": "tea"}
    facebook_comments = {"comments_v2": [{"timestamp": NOON, "data": [{"comment": comment}], "title": "x"}]}
    caption = {"media": [{"uri": "x.jpg", "creation_timestamp": NOON, "title": SAID}]}
    remark = {
        "string_map_data": {
            "Comment": {"value": SAID},
            "Media Owner": {"value": "bob"},
            "Time": {"timestamp": NOON},
        }
    }
    instagram_me = {"profile_user": [{"string_map_data": {"Username": {"value": "ann"}}}]}
    goodreads = csv(
        "Book Id,Title,Author,Author l-f,My Rating,Average Rating,Date Read,Date Added,Exclusive Shelf,My Review",
        '1,"Tea, a history",Lee Cup,"Cup, Lee",4,3.9,2021/01/01,2020/12/01,read,',
        "2,Cake,Kim Pan,,0,3.1,,2020/12/01,to-read,",
        bom=True,
    )
    spotify_old = [
        {"endTime": "2021-01-01 12:00", "artistName": "Cups", "trackName": "Kettle", "msPlayed": 1000}
    ]
    spotify_new = [
        {"ts": "2021-01-01T12:00:00Z", "master_metadata_track_name": "Kettle",
         "master_metadata_album_artist_name": "Cups", "ms_played": 1000},
        {"ts": "2021-01-01T12:00:00Z", "master_metadata_track_name": None, "episode_name": "A podcast"},
    ]  # fmt: skip
    watched = [
        {"header": "YouTube", "title": "Watched Kettles", "titleUrl": "https://y.example/1", "products": ["YouTube"],
         "subtitles": [{"name": "Cups"}], "time": "2021-01-01T12:00:00Z"},
        {"header": "YouTube", "title": "Watched a video that has been removed", "time": "2021-01-01T12:00:00Z",
         "products": ["YouTube"]},
    ]  # fmt: skip
    tube = csv(
        "Comment ID,Channel ID,Comment Create Timestamp,Price,Video ID,Comment Text",
        'c1,C,2021-01-01T12:00:00+00:00,0,v,"{""text"":""Green, ""},{""text"":""please.""}"',
    )
    review = {"type": "Feature", "properties": {"date": "2021-01-01T12:00:00Z", "five_star_rating_published": 4,
              "review_text_published": SAID, "location": {"name": "Tea house"}}}  # fmt: skip
    slack_day = [
        {
            "type": "message",
            "user": "U1",
            "text": "See <https://t.example|this> &amp; go",
            "ts": "1609502400.000100",
        },
        {"type": "message", "user": "U2", "text": "Never.", "ts": "1609502401.000100"},
        {
            "type": "message",
            "subtype": "channel_join",
            "user": "U1",
            "text": "joined",
            "ts": "1609502402.000100",
        },
    ]
    slack_users = [{"id": "U1", "name": "ann", "real_name": "Ann"}, {"id": "U2", "name": "bob"}]
    hits = {
        "hits": [
            {
                "objectID": "5",
                "author": "ann",
                "created_at_i": NOON,
                "title": None,
                "comment_text": "<p>" + SAID,
            }
        ]
    }
    news = [{"by": "ann", "id": 5, "time": NOON, "type": "comment", "text": "<p>" + SAID}]
    lemmy = {"comments": [{"comment": {"id": 5, "content": SAID, "published": "2021-01-01T12:00:00Z"},
             "creator": {"name": "ann"}, "community": {"name": "tea"}}], "posts": []}  # fmt: skip
    tumblr = {"meta": {"status": 200}, "response": {"blog": {"name": "ann"}, "posts": [
              {"blog_name": "ann", "id": 5, "type": "text", "timestamp": NOON, "reblog_key": "x",
               "body": "<p>Green, please.</p>"}]}}  # fmt: skip
    discord_channel = {"id": "1", "type": 0, "name": "general", "guild": {"id": "2", "name": "tea"}}
    discord_message = [{"ID": 5, "Timestamp": "2021-01-01 12:00:00", "Contents": SAID, "Attachments": ""}]
    trakt = [
        {
            "rated_at": "2021-01-01T12:00:00.000Z",
            "rating": 8,
            "type": "movie",
            "movie": {"title": "Tea", "year": 2020},
        }
    ]
    letterboxd = {
        "profile.csv": csv("Date Joined,Username,Given Name", "2020-01-01,ann,Ann"),
        "ratings.csv": csv(
            "Date,Name,Year,Letterboxd URI,Rating", "2021-01-01,Tea,2020,https://boxd.it/1,4.5"
        ),
        "watched.csv": csv("Date,Name,Year,Letterboxd URI", "2021-01-02,Cake,2019,https://boxd.it/2"),
    }
    midnight = NOON - 12 * 3600
    return [
        Example("goodreads", "goodreads_library_export.csv", goodreads, [
            *item("Tea, a history (Lee Cup)", 4.0, midnight), *item("Cake (Kim Pan)", None, 1606780800, 2)]),
        Example("storygraph", "books.csv", csv(
            "Title,Authors,Contributors,ISBN/UID,Format,Read Status,Date Added,Last Date Read,Star Rating,Review",
            "Tea,Lee Cup,,1,paperback,read,2020/12/01,2021/01/01,4.25,"), item("Tea (Lee Cup)", 4.25, midnight)),
        Example("imdb", "ratings.csv", csv(
            "Const,Your Rating,Date Rated,Title,URL,Title Type,IMDb Rating,Year",
            "tt1,8,2021-01-01,Tea,https://i.example,Movie,7.1,2020"), item("Tea (2020)", 8.0, midnight)),
        Example("imdb", "WATCHLIST.csv", csv(
            '"position","const","created","modified","description","Title","Title type","You rated","Year"',
            '"1","tt1","Fri Jan 1 00:00:00 2021","","","Tea","Feature Film","8","2020"'),
            item("Tea (2020)", 8.0, midnight)),
        Example("goodreads", "books.zip", zipped({"my books.csv": (
            "Book Id\tTitle\tAuthor\tMy Rating\tDate Read\tDate Added\tExclusive Shelf\n"
            "1\tTea\tLee Cup\t4\t2021/01/01\t\tread\n").encode("utf-16")}),
            item("Tea (Lee Cup)", 4.0, midnight)),
        Example("letterboxd", "letterboxd.zip", zipped(letterboxd), [
            *item("Tea (2020)", 4.5, midnight, user="ann"), *item("Cake (2019)", None, midnight + 86400, 2, "ann")]),
        Example("netflix-history", "NetflixViewingHistory.csv", csv("Title,Date", '"Tea: Season 1",1/13/21'),
                item("Tea: Season 1", None, 1610496000), ReadOptions(dates="mdy")),
        Example("netflix-history", "netflix.zip", zipped({"CONTENT_INTERACTION/ViewingActivity.csv": csv(
            "Profile Name,Start Time,Duration,Title,Supplemental Video Type", "Ann,2021-01-01 12:00:00,00:10:00,Tea,",
            "Bob,2021-01-01 12:00:00,00:10:00,Cake,")}), item("Tea", user="Ann"), ann),
        Example("spotify", "StreamingHistory0.json", js(spotify_old), item("Cups: Kettle")),
        Example("spotify", "spotify.zip", zipped({"MyData/Streaming_History_Audio_2021_0.json": js(spotify_new)}),
                item("Cups: Kettle")),
        Example("trakt", "trakt.zip", zipped({"ratings-movies.json": js(trakt)}), item("Tea (2020)", 8.0)),
        Example("trakt", "trakt-ann.zip", zipped({
            "user-profile.json": js({"username": "ann", "private": False}), "ratings-movies.json": b"[]",
            "ratings-seasons.json": js([{"rated_at": trakt[0]["rated_at"], "rating": 8, "type": "season",
                "season": {"number": 2}, "show": trakt[0]["movie"]}]),
            "watched-history-1.json": js([{"id": 1, "watched_at": trakt[0]["rated_at"], "action": "watch",
                "type": "episode", "episode": {"season": 1, "number": 2}, "show": trakt[0]["movie"]}])}), [
            *item("Tea (2020) season 2", 8.0, user="ann"), *item("Tea (2020) 1x2", row=2, user="ann")]),
        Example("lastfm", "scrobbles.csv", csv(
            "uts,utc_time,artist,artist_mbid,album,album_mbid,track,track_mbid",
            f'{NOON},"01 Jan 2021, 12:00",Cups,,A,,Kettle,'), item("Cups: Kettle")),
        Example("lastfm", "ann.csv", csv('Cups,A,"Kettle, boiling",01 Jan 2021 12:00'), item("Cups: Kettle, boiling")),
        Example("lastfm", "lastfmstats-ann.csv", csv(
            "Artist;Album;AlbumId;Track;Date#ann", f'"Cups";"A";"";"Kettle";"{NOON}123"', bom=True),
            item("Cups: Kettle", user="ann")),
        Example("lastfm", "lastfmstats-ann.json", js({"username": "ann", "scrobbles": [
            {"track": "Kettle", "artist": "Cups", "album": "A", "albumId": "", "date": NOON * 1000}]}),
            item("Cups: Kettle", user="ann")),
        Example("steam", "games.json", js({"response": {"game_count": 1, "games": [
            {"appid": 1, "name": "Chess", "playtime_forever": 90}]}}), item("Chess", 1.5, None)),
        Example("steam", "games.xml", STEAM_XML.encode(), item("Chess", 1200.5, None)),
        Example("amazon", "Retail.OrderHistory.1.csv", csv(
            '"Website","Order ID","Order Date","Currency","ASIN","Quantity","Product Name"',
            '"Amazon.com","1","2021-01-01T12:00:00Z","USD","B1","1","Kettle"'), item("Kettle")),
        Example("amazon", "Reviews.csv", csv(
            "ASIN,Review ID,Review Title,Review Text,Review Date", 'B1,r1,Tea,"Green, please.",2021-01-01T12:00:00Z'),
            post("me", "amazon.com", "r1", text="Tea\n\nGreen, please.")),
        Example("amazon", "Digital Items.csv", csv(
            "ASIN,Title,OrderId,DigitalOrderItemId,Marketplace,OrderDate,OurPrice",
            "B1,Kettle,D01-1,x,www.amazon.com,2021-01-01T12:00:00Z,1"), item("Kettle")),
        Example("amazon", "Order History.csv", csv(
            "ASIN,Order Date,Order ID,Order Status,Product Name", "B2,2021-01-01T12:00:00Z,1,Cancelled,Spoon",
            "B1,2021-01-01T12:00:00Z,2,Closed,Kettle"), item("Kettle", row=2)),
        Example("amazon", "All Data Categories.zip", zipped({"Your Amazon Orders.zip": zipped({
            "Your Amazon Orders/Order History.csv": csv(
                "ASIN,Order Date,Order ID,Original Quantity,Product Name,Total Amount",
                "B1,2021-01-01T12:00:00Z,1,1,Kettle,9.00")})}), item("Kettle")),
        Example("amazon", "Retail.CustomerReviews.ReviewsVersions1.csv", csv(
            "ASIN,ProductName,ReviewId,StarRating,SubmissionDate,Title,Body",
            'B1,Kettle,r1,5,2021-01-01T12:00:00Z,Tea,"Green, please."'),
            post("me", "amazon.com", "r1", text="Tea\n\nGreen, please.")),
        Example("amazon", "reviews.csv", csv(
            "reviewId,asin,starRating,title,text,reviewDate", 'r1,B1,5,Tea,"Green, please.",2021-01-01T12:00:00Z'),
            post("me", "amazon.com", "r1", text="Tea\n\nGreen, please.")),
        Example("discord", "package.zip", zipped({
            "account/user.json": js({"id": "7", "username": "ann"}),
            "messages/index.json": js({"1": "general in tea"}),
            "messages/c1/channel.json": js(discord_channel), "messages/c1/messages.json": js(discord_message),
            "messages/c2/channel.json": js({"id": "3", "type": 1}), "messages/c2/messages.json": js(discord_message),
        }), post("ann", "general in tea", "5")),
        Example("discord", "paket.zip", zipped({
            "Konto/user.json": js({"id": "7", "username": "ann"}),
            "Nachrichten/c1/channel.json": js(discord_channel), "Nachrichten/c1/messages.json": js(discord_message),
        }), post("ann", "general in tea", "5")),
        Example("discord", "messages.csv", csv("ID,Timestamp,Contents,Attachments",
            '5,2021-01-01 12:00:00.123000+00:00,"Green, please.",'), post("me", "channel", "5")),
        Example("telegram", "result.json", telegram(whole=False), [
            *post("Ann", "tea", "99/2", 2), *post("Ann", "tea", "99/4", 5, NOON + 120, "See tea.example!")], ann),
        Example("telegram", "telegram.zip", zipped({"DataExport/result.json": telegram(whole=True)}), [
            *post("ann", "tea", "99/2", 2), *post("ann", "tea", "99/4", 5, NOON + 120, "See tea.example!"),
            *post("ann", "private chats", "8/9", 6)]),
        Example("whatsapp", "_chat.txt", (
            "[31.12.20, 12:00:00] tea: \u200eMessages are end-to-end encrypted.\n"
            "[01.01.21, 12:00:00] Ann: Green,\nplease.\n"
            "[01.01.21, 12:00:01] Bob: Never.\n[01.01.21, 12:00:02] Ann: \u200eimage omitted\n").encode(),
            post("Ann", "whatsapp", None, 2, text="Green,\nplease."), ReadOptions(user="Ann", dates="dmy")),
        Example("whatsapp", "chat.zip", zipped({"WhatsApp Chat with Bob.txt": (
            b"1/1/21, 12:00 PM - Ann: Green, please.\n1/13/21, 12:00 PM - Bob: Never.\n")}),
            post("Ann", "whatsapp"), ReadOptions(user="Ann", dates="mdy")),
        Example("whatsapp", "renamed.zip", zipped({"Mein Export.txt": (
            "31.01.21, 13:05 - Nachrichten sind Ende-zu-Ende-verschlüsselt.\n31.01.21, 13:05 - Ann: Green, please.\n"
            ).encode()}), post("Ann", "whatsapp", row=2, time=1612098300), ReadOptions(user="Ann", dates="dmy")),
        Example("slack", "slack.zip", zipped({
            "users.json": js(slack_users), "channels.json": js([]), "tea/2021-01-01.json": js(slack_day)}),
            post("Ann", "tea", text="See this & go"), ann),
        Example("facebook", "facebook.zip", zipped({
            "your_facebook_activity/posts/your_posts__check_ins__photos_and_videos_1.json": js(facebook_post),
            "your_facebook_activity/comments_and_reactions/comments.json": js(facebook_comments),
            "personal_information/profile_information/profile_information.json": js(
                {"profile_v2": {"name": {"full_name": "Ann Z\u00c3\u00bc"}}})}), [
            *post("Ann Zü", "facebook.com", text="Grün, please."), *post("Ann Zü", "tea", row=3)]),
        Example("instagram", "instagram.zip", zipped({
            "your_instagram_activity/content/posts_1.json": js([caption]),
            "your_instagram_activity/comments/post_comments_1.json": js([remark]),
            "personal_information/personal_information/personal_information.json": js(instagram_me)}), [
            *post("ann", "instagram.com"), *post("ann", "instagram.com", row=2)]),
        Example("instagram", "one.zip", zipped({
            "instagram-ann-2021-01-01/your_instagram_activity/media/posts_1.json": js(caption),
            "instagram-ann-2021-01-01/your_instagram_activity/media/reels.json": js({"ig_reels_media": [caption]}),
            "instagram-ann-2021-01-01/your_instagram_activity/comments/post_comments_1.json": js(
                {"media_list_data": [{"uri": ""}], **remark}),
            "instagram-ann-2021-01-01/personal_information/personal_information/personal_information.json": js(
                {"profile_user": [{"string_map_data": {"Nome de usu\u00c3\u00a1rio": {"value": "ann"}}}]})}), [
            *post("ann", "instagram.com"), *post("ann", "instagram.com", row=2), *post("ann", "instagram.com", row=3)]),
        Example("instagram", "instagram_de.zip", zipped({
            "your_instagram_activity/comments/reels_comments.json": js({"comments_reels_comments": [
                {"string_map_data": {"Kommentar": {"value": SAID}, "Medieninhaber": {"value": "bob"},
                                     "Zeit": {"timestamp": NOON}}}]})}),
            post("me", "instagram.com")),
        Example("facebook", "groups.zip", zipped({
            "your_facebook_activity/groups/group_posts_and_comments.json": js({"group_posts_v2": [
                {"timestamp": NOON, "data": [{"post": SAID}], "title": "Ann posted in tea."}]}),
            "your_facebook_activity/groups/your_comments_in_groups.json": js({"group_comments_v2": [
                {"timestamp": NOON, "data": [{"comment": comment}], "title": "x"}]})}), [
            *post("me", "tea"), *post("me", "facebook.com", row=2)]),
        Example("threads", "threads_and_replies.json", js({"text_post_app_text_posts": [caption]}),
                post("me", "threads.net")),
        Example("linkedin", "linkedin.zip", zipped({
            "Profile.csv": csv("First Name,Last Name,Headline", "Ann,Cup,Tea"),
            "Comments.csv": csv("Date,Link,Message", '2021-01-01 12:00:00,https://l.example,"Green, please."'),
            "Shares.csv": csv("Date,ShareLink,ShareCommentary,SharedUrl,MediaUrl,Visibility",
                              '2021-01-01 12:00:00,https://l.example,"Green, please.",,,MEMBER_NETWORK')}), [
            *post("Ann Cup", "linkedin.com"), *post("Ann Cup", "linkedin.com", row=2)]),
        Example("google-takeout", "takeout.zip", zipped({
            "Takeout/YouTube and YouTube Music/comments/comments.csv": tube,
            "Takeout/YouTube and YouTube Music/history/watch-history.json": js(watched),
            "Takeout/Maps (your places)/Reviews.json": js({"type": "FeatureCollection", "features": [review]})}), [
            *post("me", "youtube.com", "c1"), *post("me", "maps.google.com", row=2)]),
        Example("google-takeout", "takeout_de.zip", zipped({
            "Takeout/YouTube und YouTube Music/Kommentare/Kommentare.csv": csv(
                "Kommentar-ID,Kanal-ID,Zeitstempel der Erstellung des Kommentars,Preis,Video-ID,Kommentartext",
                'c1,C,2021-01-01T12:00:00+00:00,0,v,"{""text"":""Green, please.""}"', bom=True),
            "Takeout/Maps (Meine Orte)/Rezensionen.json": js({"type": "FeatureCollection", "features": [review]})}), [
            *post("me", "youtube.com", "c1"), *post("me", "maps.google.com", row=2)]),
        Example("google-takeout", "live chats.csv", csv(
            "Live Chat ID,Channel ID,Live Chat Create Timestamp,Price,Video ID,Live Chat Text",
            'c1,C,2021-01-01T12:00:00+00:00,0,v,"{""text"":""Green, please.""}"'), post("me", "youtube.com", "c1")),
        Example("google-takeout", "watch-history.html", WATCHED_PAGE.encode(), item("Cups: Kettles & cups")),
        Example("google-takeout", "page.zip", zipped({
            "Takeout/YouTube und YouTube Music/Verlauf/Wiedergabeverlauf.html": WATCHED_PAGE.encode()}),
            item("Cups: Kettles & cups")),
        Example("google-takeout", "watch-history.json", js(watched), item("Cups: Kettles")),
        Example("hacker-news", "search.json", js(hits), post("ann", "news.ycombinator.com", "5")),
        Example("hacker-news", "items.json", js(news), post("ann", "news.ycombinator.com", "5")),
        Example("lemmy", "user.json", js(lemmy), post("ann", "tea", "5")),
        Example("tumblr", "posts.json", js(tumblr), post("me", "tumblr.com", "5")),
        Example("tumblr", "tumblr.zip", zipped({"posts/html/5.html": TUMBLR_PAGE.encode()}),
                post("me", "tumblr.com", text="Tea\nGreen, please.")),
        Example("tumblr", "blog.zip", zipped({"posts.zip": zipped({"html/5.html": TUMBLR_PAGE.encode()}),
                "payload-0.json": js([{"type": "account"}])}), post("me", "tumblr.com", text="Tea\nGreen, please.")),
        Example("tumblr", "backup.zip", zipped({"json/5.json": js(tumblr["response"]["posts"][0])}),
                post("me", "tumblr.com", "5")),
        Example("discourse", "user_archive.csv", csv(
            "topic_title,categories,is_pm,post_raw,post_cooked,like_count,reply_count,url,created_at",
            'Tea,Drinks,No,"Green, please.",<p>Green</p>,0,0,https://d.example/t/1/2,2021-01-01 12:00:00 UTC',
            'Hi,,Yes,"Just you.",<p>Just you.</p>,0,0,https://d.example/t/2/1,2021-01-01 12:00:00 UTC'),
            post("me", "Drinks", "https://d.example/t/1/2")),
        Example("feed", "wordpress.xml", WXR.encode(), post("ann", "blog", "https://b.example/?p=1",
                text="Tea\n\nGreen, please.")),
        Example("feed", "atom.xml", ATOM.encode(), post("ann", "blog", "e1", text="Tea\n\nGreen, please.")),
        Example("bluesky", "repo.car", car(), post("did:plc:abcdefghijklmnopqrstuvwx", "bsky.app",
                (b"\x01\x71\x12\x20" + bytes(range(32))).hex())),
        Example("bluesky", "bluesky.zip", zipped({"did-plc-abc/repo.car": car()}), post(
                "did:plc:abcdefghijklmnopqrstuvwx", "bsky.app", (b"\x01\x71\x12\x20" + bytes(range(32))).hex())),
        Example("movielens-users", "users.dat", b"1::F::25::10::48067\n2::M::56::16::70072\n", attributes(
            (1, None, "1", "gender", "F"), (1, None, "1", "age", "25"), (1, None, "1", "occupation", "10"),
            (1, None, "1", "zip", "48067"), (2, None, "2", "gender", "M"), (2, None, "2", "age", "56"),
            (2, None, "2", "occupation", "16"), (2, None, "2", "zip", "70072"))),
        Example("jester", "jester-data-1.csv", JESTER.encode() + b"\n", items(
            (1, None, "1", "joke 1", -7.82, None), (1, None, "1", "joke 3", 8.79, None),
            (2, None, "2", "joke 2", 0.5, None))),
        Example("json", "notes.json", js([
            {"author": "ann", "text": "Hello", "time": NOON}, {"author": "bob", "text": "Hi"}]), [
            *posts((1, None, "ann", None, NOON, "Hello")), *posts((2, None, "bob", None, None, "Hi"))]),
        Example("sqlite", "notes.db", database(), posts((1, None, "ann", None, NOON, "Hello"))),
        Example("excel", "notes.xlsx", workbook(zipped), posts((2, None, "ann", None, NOON, "Hello"))),
        Example("fimi", "users.dat", b"2 11 12\n1 13\n", items(
            (1, None, "1", "11", None, None), (1, None, "1", "12", None, None), (2, None, "2", "13", None, None))),
        Example("twitter", "tweets.js", b'window.YTD.tweets.part0 = [{"tweet": {"id_str": "1", "full_text": "First", '
                b'"created_at": "Wed Nov 11 20:00:00 +0000 2020"}}]',
                posts((1, "1", "Ann", "x.com", 1605124800, "First")),
                ann),
    ]  # fmt: skip
