"use strict";
// What an export holds: posts with their times and accounts, or a sentence that says why it cannot be read.

/** A failure that a visitor can understand; whatever else goes wrong is told in a sentence of the page's own. */
class Refusal extends Error {}

const exportReader = (given) => {
  const LARGEST_FILE = 512 * 2 ** 20, LARGEST_PART = 256 * 2 ** 20;
  const KINDS = "This page reads the ZIP of Reddit, X or Mastodon, and posts in a CSV, JSON or text file; `incrowd assess` reads many other kinds.";

  // Bytes

  async function inflated(bytes, how, most = Infinity) {
    const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(how)).getReader();
    const parts = [];
    let size = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      size += value.length;
      if (size > most) throw new Refusal("A file in the archive is larger than this page reads (256 MiB).");
      parts.push(value);
    }
    const whole = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }

  const isBinary = (bytes) => bytes.subarray(0, 4096).some((byte) => byte < 32 && ![9, 10, 12, 13].includes(byte));

  // Columns, by the names that an import of incrowd knows

  const normal = (name) => name.split(":", 1)[0].toLowerCase().replace(/[-_ .]/g, "");
  function columns(names) {
    const found = {};
    const at = new Map(names.map((name, k) => [normal(name), k]).reverse());
    for (const [ours, preferred] of Object.entries(given.columns)) {
      const name = preferred.find((one) => at.has(one));
      if (name !== undefined) found[ours] = at.get(name);
    }
    return found;
  }

  const when = (value) => {
    if (value === undefined || value === null || value === "") return Infinity;
    const number = Number(value);
    const parsed = Number.isNaN(number) ? Date.parse(String(value).replace(/ UTC$/, "Z").replace(/^(\d{4}-\d\d-\d\d) (?=\d)/, "$1T")) / 1000 : number;
    return Number.isNaN(parsed) ? Infinity : Math.floor(parsed);
  };
  const isGone = (text) => text === "" || given.gone.includes(text);
  const together = (title, text) => [title, isGone(text ?? "") ? "" : text].filter(Boolean).join("\n\n");

  // Tables

  function csv(text, mark, name) {
    const rows = [];
    let row = [], cell = "", quoted = false;
    for (let k = 0; k < text.length; k++) {
      const c = text[k];
      if (quoted) {
        if (c === '"' && text[k + 1] === '"') cell += text[++k];
        else if (c === '"') quoted = false;
        else cell += c;
      } else if (c === '"' && cell === "") quoted = true;
      else if (c === mark) row.push(cell), (cell = "");
      else if (c === "\n") row.push(cell.replace(/\r$/, "")), rows.push(row), (row = []), (cell = "");
      else cell += c;
    }
    if (quoted) throw new Refusal(`${name}: a quote opened in record ${rows.length + 1} is never closed. Export the file again.`);
    if (cell !== "" || row.length) row.push(cell), rows.push(row);
    return rows;
  }

  /** The first line's columns, read with the delimiter that finds most names that are known, then most columns. */
  function header(text) {
    const line = text.split("\n", 1)[0].replace(/\r$/, "");
    const readings = [",", "\t", ";", "|"].map((mark) => {
      const names = line.split(mark).map((one) => one.replace(/^"|"$/g, ""));
      return { mark, width: names.length, found: columns(names) };
    });
    const known = (one) => Object.keys(one.found).length;
    return readings.reduce((best, one) => (known(one) - known(best) || one.width - best.width) > 0 ? one : best);
  }

  function table(text, name) {
    const { mark } = header(text);
    const [names, ...rows] = csv(text, mark, name), found = columns(names);
    if (found.text === undefined) throw new Refusal(`${name}: there is no column of texts, such as ${given.columns.text.slice(0, 6).join(", ")}. ${KINDS}`);
    return rows.map((row) => ({
      text: together(row[found.title], row[found.text]),
      time: when(row[found.time]),
      user: found.user === undefined ? undefined : row[found.user]?.trim() || null,
    }));
  }

  // JSON

  function record(one) {
    const post = one?.tweet ?? one;
    if (typeof post !== "object" || post === null) return [];
    if (post.object?.content !== undefined || post.type === "Announce") return activity(post);
    const names = Object.keys(post), found = columns(names);
    const [texts, title, time, user] = [
      given.columns.text.flatMap((name) => names.filter((own) => normal(own) === name)).map((own) => post[own]).filter((value) => typeof value === "string"),
      ...["title", "time", "user"].map((ours) => post[names[found[ours]]]),
    ];
    // A title alone is something watched or read, and nothing that the person wrote.
    if (!texts.length) return [];
    const whole = together(typeof title === "string" ? title : "", texts.find((text) => !isGone(text)));
    const name = typeof user === "string" || typeof user === "number" ? String(user).trim() || null : undefined;
    return whole && !whole.startsWith("RT @") ? [{ text: whole, time: when(time), user: name }] : [];
  }

  const PUBLIC = ["https://www.w3.org/ns/activitystreams#Public", "as:Public", "Public"];
  function activity(one) {
    const audience = [one.object?.to, one.object?.cc].flat();
    if (one.type !== "Create" || !audience.some((who) => PUBLIC.includes(who))) return [];
    const seen = new DOMParser().parseFromString(one.object.content, "text/html");
    for (const quote of seen.querySelectorAll("blockquote, pre, code, script, style")) quote.remove();
    for (const line of seen.querySelectorAll("p, br, li, div")) line.append("\n");
    const text = [one.object.summary, seen.body.textContent.trim()].filter(Boolean).join("\n\n");
    const actor = one.object.attributedTo ?? one.actor;
    return [{ text, time: when(one.object.published), user: typeof actor === "string" ? account(actor) : undefined }];
  }

  /** NAME@HOST of an account's address. */
  function account(actor) {
    const found = /^[a-z]+:\/\/([^/?#]+)\/(?:[^?#]*\/)?@?([^/?#]+)\/*(?:[?#].*)?$/i.exec(actor);
    return found ? `${found[2]}@${found[1]}` : actor;
  }

  function json(text, name) {
    const start = text.trimStart();
    try {
      if (start.startsWith("window.YTD.")) return JSON.parse(start.slice(start.indexOf("["))).flatMap(record);
      try {
        const whole = JSON.parse(start);
        return (Array.isArray(whole?.orderedItems) ? whole.orderedItems : [whole].flat()).flatMap(record);
      } catch {
        return start.split("\n").filter((line) => line.trim()).flatMap((line) => record(JSON.parse(line)));
      }
    } catch {
      throw new Refusal(`${name}: this is no JSON, or it breaks off. Export the file again.`);
    }
  }

  // Files

  const texts = new TextDecoder("utf-8");
  const OWN = [/(^|\/)(comments|posts)\.csv$/i, /(^|\/)data\/tweets?(-part\d+)?\.js$/, /(^|\/)outbox\.json$/];
  const MARKS = [/^[^\n]*\bsubreddit\b/i, /^\s*window\.YTD\./, /^\s*\{[^]{0,4096}"orderedItems"/];
  const WHOSE = [/(^|\/)statistics\.csv$/, /(^|\/)data\/account\.js$/];

  /** Posts, each with the service whose export this is, if it is one of those above. */
  function ofService(text, path, archived) {
    const marked = (k) => MARKS[k].test(text);
    const from = given.services.find((_, k) => (archived ? OWN[k].test(path) && (k > 0 || marked(k)) : k > 0 && marked(k)));
    return posts(text, path).map((post) => ({ ...post, from }));
  }

  /** The account's name where Reddit and X put it; undefined: the archive does not say. */
  function named(text, path) {
    if (!path.endsWith(".js")) return csv(text, ",", path).find((row) => row[0].trim().toLowerCase() === "account name")?.[1]?.trim() || undefined;
    return JSON.parse(text.slice(text.indexOf("["))).map((one) => one?.account?.username).find(Boolean);
  }

  async function zip(bytes, name) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const damaged = () => new Refusal(`${name}: the archive is damaged. Fetch it again.`);
    let end = bytes.length - 22, found = [], owner;
    while (end >= 0 && view.getUint32(end, true) !== 0x06054b50) end--;
    if (end < 0) throw damaged();
    try {
      for (let at = view.getUint32(end + 16, true), left = view.getUint16(end + 10, true); left > 0; left--) {
        if (view.getUint32(at, true) !== 0x02014b50) throw damaged();
        const [title, extra, note] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
        const path = texts.decode(bytes.subarray(at + 46, at + 46 + title));
        const is = (wanted) => wanted.some((one) => one.test(path));
        if (is(OWN) || is(WHOSE)) {
          const local = view.getUint32(at + 42, true);
          const first = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
          const packed = bytes.subarray(first, first + view.getUint32(at + 20, true));
          const how = view.getUint16(at + 10, true);
          const text = texts.decode(how === 0 ? packed : await inflated(packed, "deflate-raw", LARGEST_PART));
          if (is(OWN)) found = found.concat(text.trim() ? ofService(text, path, true) : []);
          else owner ??= named(text, path);
        }
        at += 46 + title + extra + note;
      }
    } catch (problem) {
      throw problem instanceof Refusal ? problem : damaged();
    }
    if (!found.length) throw new Refusal(`${name}: no posts were found in the archive. ${KINDS}`);
    return found.map((post) => (post.user === undefined ? { ...post, user: owner } : post));
  }

  const LINE = new RegExp(`^(?:${given.chat})`, "su");
  const TIDY = /[\u200e\u200f\u202a\u202c\u2068\u2069\ufeff]/g;
  function isChat(text) {
    const lines = text.slice(0, 20000).split("\n").slice(0, 20).map((line) => line.replace(TIDY, "").replace(/[\u202f\xa0]/g, " ")).filter((line) => line.trim());
    return lines.length > 0 && LINE.test(lines[0]) && lines.filter((line) => LINE.test(line)).length * 3 >= lines.length;
  }

  function posts(text, name) {
    const clean = text.replace(/^\ufeff/, "");
    if (!clean.trim()) throw new Refusal(`${name}: the file is empty. No posts were found in it.`);
    if (/\.(json|jsonl|ndjson|js)$/i.test(name)) return json(clean, name);
    if (/\.(csv|tsv)$/i.test(name)) return table(clean, name);
    if (isChat(clean)) throw new Refusal(`${name}: this is a chat, in which others write, too. ${KINDS}`);
    const isText = /\.(txt|text|md)$/i.test(name) && !/^\s*<(!doctype|\?xml|html|rss|feed)/i.test(clean);
    if (!isText && /^\s*[[{]/.test(clean)) return json(clean, name);
    if (!isText) throw new Refusal(`${name}: this is no kind of file that holds posts here. ${KINDS}`);
    const { width, found } = header(clean);
    if (width > 1 && found.text !== undefined && found.user !== undefined) return table(clean, name);
    return clean.split(/\n\s*\n/).map((part) => ({ text: part, time: Infinity }));
  }

  /** The posts of a file: text, time and user (undefined where the file does not say whose it is). */
  async function read(file) {
    if (file.size > LARGEST_FILE) throw new Refusal(`${file.name}: the file is larger than this page reads (512 MiB).`);
    let bytes;
    try {
      bytes = new Uint8Array(await file.arrayBuffer());
    } catch {
      throw new Refusal(`${file.name}: this cannot be opened. It should be a file, and no folder.`);
    }
    if (bytes[0] === 0x50 && bytes[1] === 0x4b && bytes[2] < 9) return zip(bytes, file.name);
    if (isBinary(bytes)) throw new Refusal(`${file.name}: this is no text, but a picture, a film, a PDF or the like. ${KINDS}`);
    return ofService(texts.decode(bytes), file.name, false);
  }

  // One person's

  const asSentence = (words) => words[0].toUpperCase() + words.slice(1);

  /** How many accounts the posts are of; what does not say whose it is, is the asker's. */
  const accounts = (found) => new Set(known(found).map((post) => post.user ?? given.owner)).size;
  const known = (found) => found.filter((post) => !given.gone.includes(post.user));

  /** One account's posts; without a name, those of the only one. */
  function own(found, name) {
    const several = accounts(found);
    if (name === undefined || name === "") {
      if (several > 1) throw new Refusal(`${asSentence(given.several.replace("{accounts}", several))} Under which name did you write?`);
      return known(found);
    }
    const mine = known(found).filter((post) => (post.user === undefined ? name : post.user ?? given.owner) === name);
    if (!mine.length) throw new Refusal(asSentence(given.nobody));
    return mine;
  }

  /** Texts in order of time, each once. */
  const inOrder = (found) => {
    const distinct = new Map(found.filter((post) => post.text.trim()).map((post) => [`${post.time} ${post.text}`, post]));
    return [...distinct.values()].sort((a, b) => (a.time === b.time ? 0 : a.time - b.time) || (a.text < b.text ? -1 : 1)).map((post) => post.text);
  };

  /** The services that some posts are exports of. */
  const services = (found) => [...new Set(found.map((post) => post.from))].filter((one) => one !== undefined).sort();

  return { read, own, accounts, services, inOrder, inflated, asSentence, KINDS };
};
