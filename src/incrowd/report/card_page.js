// Measuring oneself with a card in a browser: the tokens of incrowd.text.reference and the arithmetic of
// incrowd.measures.recognition.from_card. Nothing is sent, and nothing is kept.
(() => {
  const given = JSON.parse(document.getElementById("data").textContent);
  const { read, own, accounts, services, inOrder, inflated, asSentence, KINDS } = exportReader(given);
  const MOST_WORDS = 12;
  const SOMEBODY = "somebody you mention";

  // Text becomes tokens

  const S = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"; // str.isspace of Python
  const SPACES = new RegExp(`[${S}]+`, "u"), BLANK = new RegExp(`^[${S}]*$`, "u");
  const TRIM = new RegExp(`^[${S}]+|[${S}]+$`, "gu");
  const words = (text) => text.split(SPACES).filter((word) => word !== "");

  const ENTITY = /&(#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\r\f <&#;]{1,32};?)/g;
  const decoder = document.createElement("textarea");
  function decode(entity) {
    decoder.innerHTML = entity; // text only: what the pattern takes holds no "<"
    return decoder.value;
  }
  const unescaped = (text) => text.replace(ENTITY, decode);
  const withoutEntities = (text) => (text.includes("&") ? unescaped(unescaped(text)) : text);

  const FENCE = /^ {0,3}(`{3,}|~{3,})[^`~]*$/u;
  const INDENTED = new RegExp(`^(?: {4}| {0,3}\\t)[${S}]*[^${S}]`, "u");
  const LIST_ITEM = /^[ \t]*(?:[*+-]|[0-9]{1,9}[.)])[ \t]/u;
  const LIST_NUMBER = /^[ \t]*[0-9]{1,9}[.)](?=[ \t])/u;
  const QUOTE = /^ {0,3}>(?!!)/u;
  const CELL = "[ \\t]*:?-+:?[ \\t]*";
  const TABLE_RULE = new RegExp(`^[ \\t]*(?:\\|${CELL}|${CELL}\\|${CELL})(?:\\|${CELL})*\\|?[${S}]*$`, "u");
  const BACKTICKS = /(?<!\\)`+/gu;
  const T = `[^${S}()<>]*`;
  const LINK_TARGET = new RegExp(`\\]\\([ ]*<?(${T}(?:\\(${T}\\)${T})*)>?(?=[ ]*\\)|[ ]+["'(])`, "gu");
  const ABSOLUTE = /^(?:(?:https?|ftp):\/\/|www\.)/u;
  const ESCAPED = /\\([!-/:-@[-`{-~])/gu;

  function withoutMarkup(text) {
    let lines = ownLines(text.split("\n"));
    if (lines.some((line) => TABLE_RULE.test(line)))
      lines = lines.map((line) => (TABLE_RULE.test(line) ? "" : line.replaceAll("|", " ")));
    return lines.map(ownWords).join("\n").replace(ESCAPED, "$1");
  }

  // Code blocks (fenced, or indented after a blank line) and quoted lines are nobody's own words.
  function ownLines(lines) {
    let fence = "", afterBlank = true;
    return lines.map((line) => {
      const opening = FENCE.exec(line);
      if (fence) {
        if (opening && opening[1].startsWith(fence) && line.replace(TRIM, "") === opening[1]) fence = "";
        return "";
      }
      if (opening) {
        fence = opening[1];
        return "";
      }
      if (afterBlank && INDENTED.test(line) && !LIST_ITEM.test(line)) return "";
      afterBlank = BLANK.test(line);
      return QUOTE.test(line) ? "" : line;
    });
  }

  function ownWords(line) {
    let own = line.replace(LIST_NUMBER, "");
    if (own.includes("`")) own = withoutInlineCode(own);
    if (!own.includes("](")) return own;
    return own.replace(LINK_TARGET, (found, target) => (ABSOLUTE.test(target) ? found : "] "));
  }

  // What stands between a run of backticks and the next run of the same length goes.
  function withoutInlineCode(line) {
    const runs = [...line.matchAll(BACKTICKS)].map((run) => [run.index, run.index + run[0].length]);
    const closing = new Array(runs.length), next = new Map();
    for (let i = runs.length - 1; i >= 0; i--) {
      const length = runs[i][1] - runs[i][0];
      closing[i] = next.get(length);
      next.set(length, i);
    }
    const kept = [];
    let at = 0;
    for (let i = 0; i < runs.length; i++) {
      if (closing[i] === undefined) continue;
      kept.push(line.slice(at, runs[i][0]));
      at = runs[closing[i]][1];
      i = closing[i];
    }
    return [...kept, line.slice(at)].join(" ");
  }

  const W = "[\\p{L}\\p{N}]";
  const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

  // The longest of some smileys, its last character once or more, unless a word goes on after it.
  function anySmiley(smileys) {
    if (!smileys.length) return "(?!)";
    const longestFirst = [...smileys].sort((a, b) => [...b].length - [...a].length || (a < b ? -1 : 1));
    const patterns = longestFirst.map((smiley) => {
      const last = escaped([...smiley].at(-1));
      return `${escaped(smiley)}${last}*(?!${last})`;
    });
    return `(?:${patterns.join("|")})(?!${W})`;
  }

  const PATH = `[^${S}<>"|[\\]()]*`;
  const URL_ = `(?:(?:https?|ftp)://|(?=(?<!${W})www\\.${W}))(?<authority>[\\p{L}\\p{N}_.~%:@+\\-]*)` +
    `(?:[/?#]${PATH}(?:\\(${PATH}\\)${PATH})*)?`;
  const RUN = /(.)\1{3,}/gsu;
  const cutRuns = (text) => text.replace(RUN, "$1$1$1");
  const MARKS = /\p{M}+/gu;
  const SYMBOL = /[\p{So}--[\ufffc\ufffd\u2800]]/gv;
  const OTHER = new RegExp(`[^${S}\\p{L}\\p{N}\\p{So}'\\p{M}]|[\\ufffc\\ufffd\\u2800]`, "gu");

  const stopWords = new Set(given.text.stop_words), smileys = new Set(given.text.smileys);
  const worded = given.text.smileys.filter((smiley) => /[\p{L}\p{N}]/u.test(smiley));
  const plain = given.text.smileys.filter((smiley) => !worded.includes(smiley));
  const KEPT = new RegExp(`${URL_}|(?<!${W})${anySmiley(worded)}|${anySmiley(plain)}`, "gu");

  function tokens(text) {
    if (given.text.tokens === "simple")
      return words(text.toLowerCase()).flatMap((chunk) => chunk.match(/[a-z0-9']+/g) ?? []).filter(isTold);
    const own = withoutMarkup((given.text.compat_gt ? text : withoutEntities(text)).toLowerCase());
    return words(own).flatMap(chunkTokens);
  }

  // Words that only name somebody else, as incrowd.text.mentions finds them: measured, and never shown.
  const MENTION = new RegExp(`[@＠](?:_|${W})|(?:^|(?!_|${W}).)u\\\\?/(?:_|${W})|/user/(?:_|${W})`, "isu");
  function mentioned(texts) {
    const others = new Set(), own = new Set();
    for (const chunk of new Set(texts.flatMap(words)))
      for (const token of tokens(chunk)) (MENTION.test(chunk) ? others : own).add(token);
    return new Set([...others].filter((token) => !own.has(token)));
  }

  const isTold = (token) => !stopWords.has(token);
  const known = new Map(); // people repeat themselves
  function chunkTokens(chunk) {
    let found = known.get(chunk);
    if (found === undefined) {
      found = freshTokens(chunk);
      if (known.size < 200000) known.set(chunk, found);
    }
    return found;
  }

  function freshTokens(chunk) {
    const text = chunk.normalize("NFC").replace(MARKS, "");
    const found = [];
    let at = 0;
    for (const kept of text.matchAll(KEPT)) {
      found.push(...wordTokens(text.slice(at, kept.index)));
      found.push(...(kept.groups.authority !== undefined ? host(kept.groups.authority) : [smiley(kept[0])]));
      at = kept.index + kept[0].length;
    }
    found.push(...wordTokens(text.slice(at)));
    return found.filter(isTold);
  }

  function host(authority) {
    const name = authority.slice(authority.lastIndexOf("@") + 1).split(":")[0].replace(/^[.\-~+%_]+|[.\-~+%_]+$/g, "");
    return name ? [name] : [];
  }

  function smiley(found) {
    const letters = [...found], last = letters.at(-1);
    while (letters.length && letters.at(-1) === last) letters.pop();
    let one = letters.join("");
    do one += last; while (!smileys.has(one));
    return one;
  }

  // A stop word with an apostrophe is looked up as written: "he'll" goes and "hell" stays.
  function wordTokens(piece) {
    const apart = cutRuns(piece).replace(/[’‘]/g, "'").replace(SYMBOL, " $& ").replace(OTHER, "");
    return words(apart).flatMap((word) => {
      const token = cutRuns(word.replaceAll("'", ""));
      return token && isTold(cutRuns(word.replace(/^'+|'+$/g, ""))) ? [token] : [];
    });
  }

  // The people of the card

  function numbers(bytes) {
    let at = 0;
    return (count) => {
      const found = new Int32Array(count);
      for (let k = 0; k < count; k++) {
        let value = 0, shift = 0, byte;
        do {
          byte = bytes[at++];
          value |= (byte & 127) << shift;
          shift += 7;
        } while (byte > 127);
        found[k] = value;
      }
      return found;
    };
  }

  async function unpacked(base64, how) {
    const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
    return inflated(bytes, how);
  }

  const opened = new Map();
  async function community(name) {
    const part = given.communities.find((one) => one.name === name);
    if (!opened.has(name)) opened.set(name, prepared(part, numbers(await unpacked(part.made_up, "gzip"))));
    return opened.get(name);
  }

  // Weigh words by how rare they are among people: rows of length 1 over listed words; unlisted ones match nobody.
  function prepared(part, read) {
    const lengths = read(part.rows), total = lengths.reduce((a, b) => a + b, 0);
    const columns = read(total), counts = read(total), rare = read(part.rows);
    const weight = Float64Array.from(part.users, (share) => Math.log((1 + part.people) / (1 + share * part.people)) + 1);
    const unlisted = Math.log(1 + part.people) + 1;
    const starts = new Int32Array(part.rows + 1);
    const damped = new Float64Array(total), shares = new Float64Array(total);
    for (let row = 0, at = 0; row < part.rows; row++) {
      const first = at, end = at + lengths[row];
      let squares = rare[row] * unlisted ** 2, said = rare[row];
      for (let word = 0; at < end; at++) {
        columns[at] = word = columns[at] + (at === first ? 0 : word);
        damped[at] = (1 + Math.log(counts[at] + 1)) * weight[word];
        squares += damped[at] ** 2;
        said += counts[at] + 1;
      }
      const length = Math.sqrt(Math.max(squares, 1e-12));
      for (let k = first; k < end; k++) {
        damped[k] /= length;
        shares[k] = (counts[k] + 1) / said;
      }
      starts[row + 1] = end;
    }
    const place = new Map(part.words.map((word, at) => [word, at]));
    return { ...part, starts, columns, damped, shares, weight, unlisted, place };
  }

  // How few posts find somebody

  function summed(posts) {
    const counts = new Map();
    for (const post of posts) for (const [word, count] of post) counts.set(word, (counts.get(word) ?? 0) + count);
    return counts;
  }

  function unit(counts, people) {
    const found = new Map();
    let squares = 0;
    for (const [word, count] of counts) {
      const place = people.place.get(word);
      const value = (1 + Math.log(count)) * (place === undefined ? people.unlisted : people.weight[place]);
      found.set(word, value);
      squares += value ** 2;
    }
    const length = Math.sqrt(squares) || 1;
    for (const [word, value] of found) found.set(word, value / length);
    return found;
  }

  function sharedWords(one, other) {
    return [...one].filter(([word]) => other.has(word)).map(([word, value]) => [word, value * other.get(word)]);
  }

  function logRank(people, profile, posts, n) {
    if (posts.length < n || !profile.length) return NaN;
    const own = unit(summed(profile), people), dense = new Float64Array(people.weight.length);
    let total = 0;
    for (let draw = 0; draw < given.draws; draw++) {
      const read = [];
      for (let k = 0; k < n; k++) read.push(posts[Math.floor(((k + (draw + 0.5) / given.draws) * posts.length) / n)]);
      const said = unit(summed(read), people);
      const mine = sharedWords(said, own).reduce((sum, [, part]) => sum + part, 0);
      dense.fill(0);
      for (const [word, value] of said) {
        const place = people.place.get(word);
        if (place !== undefined) dense[place] = value;
      }
      const scores = new Float64Array(people.rows);
      for (let row = 0; row < people.rows; row++)
        for (let k = people.starts[row]; k < people.starts[row + 1]; k++) scores[row] += people.damped[k] * dense[people.columns[k]];
      total += logRankAmong(scores, mine);
    }
    return total / given.draws - Math.log(people.rows / people.people);
  }

  // How manieth a score comes, carried on where few are above it: log_ranks of Python. Sorts the scores.
  function logRankAmong(scores, mine) {
    let above = 0;
    for (const score of scores) above += score > mine ? 1 : score === mine ? 0.5 : 0;
    const top = Math.min(given.top, scores.length - 1), best = scores.sort().subarray(-(top + 1)), line = best[0];
    if (mine <= line) return Math.log(Math.max(above, top));
    const excess = best.reduce((sum, score) => sum + score - line, 0) / top;
    const ahead = excess > 0 ? (mine - line) / excess : 2 * given.farthest;
    return Math.max(Math.log(top) - ahead, -given.farthest);
  }

  function rehearsed(people, posts) {
    const cut = Math.floor((posts.length + 1) / 2);
    const halves = [posts.slice(0, cut), posts.slice(cut)];
    const ranks = given.known.map((n) => {
      const both = [[0, 1], [1, 0]].map(([a, b]) => logRank(people, halves[a], halves[b], n)).filter((one) => !Number.isNaN(one));
      return both.length ? both.reduce((a, b) => a + b, 0) / both.length : NaN;
    });
    return goneOn(ranks);
  }

  // Numbers of posts that nobody has to spare: log ranks go on falling with the logarithm of the number.
  function goneOn(ranks) {
    const filled = [...ranks];
    for (let k = 1; k < filled.length; k++) {
      if (!Number.isNaN(filled[k])) continue;
      const ends = [given.known[Math.max(k - 2, 0)], given.known[k - 1], given.known[k]].map(Math.log);
      const slope = k > 1 ? (filled[k - 1] - filled[k - 2]) / (ends[1] - ends[0]) : 0;
      filled[k] = Math.max(-given.farthest, filled[k - 1] + Math.min(slope, 0) * (ends[2] - ends[1]));
    }
    return filled;
  }

  const expit = (odds) => 1 / (1 + Math.exp(-odds));
  const logOdds = (p) => Math.log(Math.min(Math.max(p, 1e-6), 1 - 1e-6) / (1 - Math.min(Math.max(p, 1e-6), 1 - 1e-6)));

  function probabilities(ranks, words) {
    const told = [];
    let highest = -Infinity;
    given.known.forEach((n, k) => {
      const [level, byRank, byWords] = given.learnt[n];
      const odds = level + byRank * ranks[k] + byWords * Math.log(Math.max(words, 1));
      if (Number.isNaN(odds)) return;
      highest = Math.max(highest, odds);
      const probability = expit(highest);
      const off = given.doubt + given.drift * Math.max(0, -ranks[k]);
      told.push({ n, probability, low: expit(highest - off), high: ranks[k] <= 0 ? 1 : expit(highest + off) });
    });
    return told;
  }

  function postsItTakes(told) {
    for (let k = 0; k < told.length; k++) {
      if (told[k].probability < 0.5) continue;
      if (k === 0) return told[0].n;
      const [before, lower] = [told[k - 1].n, logOdds(told[k - 1].probability)];
      const share = (0 - lower) / (logOdds(told[k].probability) - lower);
      return Math.ceil(Math.exp(Math.log(before) + share * Math.log(told[k].n / before)) - 1e-9);
    }
    return Infinity;
  }

  // Within which distance of made-up people as many are as real ones are within a limit: incrowd.cards.laws.Correction.
  function madeUpLimit(people, apart, limit, different, listed) {
    if (!people.practised.length) return limit;
    const some = people.practised.map((row) => apart[row]);
    const mean = some.reduce((sum, one) => sum + one, 0) / some.length;
    const spread = Math.sqrt(some.reduce((sum, one) => sum + (one - mean) ** 2, 0) / some.length);
    const [level, slope, byMean, bySpread, byWords, slopeByWords, byListed] = people.correction;
    const words = Math.log(Math.max(different, 1));
    const zero = level + byMean * mean + bySpread * spread + byWords * words + byListed * listed;
    return (limit - zero) / Math.max(slope + slopeByWords * words, people.flattest);
  }

  // How many write alike: Jensen-Shannon, by the words both use.
  function writeAlike(people, counts) {
    const said = [...counts.values()].reduce((a, b) => a + b, 0);
    if (!said) return null;
    const dense = new Float64Array(people.weight.length);
    for (const [word, count] of counts) {
      const place = people.place.get(word);
      if (place !== undefined) dense[place] = count / said;
    }
    const apart = new Float64Array(people.rows);
    for (let row = 0; row < people.rows; row++) {
      let alike = 0;
      for (let k = people.starts[row]; k < people.starts[row + 1]; k++) {
        const p = dense[people.columns[k]], q = people.shares[k];
        if (p > 0) alike += ((p + q) * Math.log2(p + q) - p * Math.log2(p) - q * Math.log2(q)) / 2;
      }
      apart[row] = Math.sqrt(Math.max(0, 1 - alike));
    }
    const listed = dense.reduce((sum, share) => sum + share, 0);
    const limit = madeUpLimit(people, apart, given.radius, counts.size, listed);
    const within = apart.reduce((sum, one) => sum + (one <= limit + 1e-9), 0);
    return 1 + Math.round((within * people.people) / people.rows);
  }

  // Whoever is mentioned is one part together.
  function withoutNames(shared, others) {
    const named = shared.filter(([word]) => !others.has(word)), rest = shared.filter(([word]) => others.has(word));
    return rest.length ? [...named, [SOMEBODY, rest.reduce((sum, [, share]) => sum + share, 0)]] : named;
  }

  // People of the card seem to write in another language: incrowd.measures.card_crowd, by the words of some posts.
  function doubt(people, posts) {
    const { looked_at, share, enough, sentence } = given.foreign;
    const step = Math.max(1, Math.floor(posts.length / looked_at));
    const counts = summed(posts.filter((_, k) => k % step === 0));
    const sum = (some) => some.reduce((total, [, count]) => total + count, 0);
    const written = sum([...counts]), listed = sum([...counts].filter(([word]) => people.place.has(word)));
    if (written < enough || listed >= share * usuallyListed(people, written) * written) return "";
    return sentence.replace("{share}", `${Math.round((100 * listed) / written)}%`).replace("{community}", people.name);
  }

  // Not where the people of the card write: CardCrowd.elsewhere, of the card that comes with incrowd.
  function elsewhere(people, found) {
    const from = services(found), { service, sentence } = given.elsewhere ?? {};
    if (!service || !from.length || from.some((title) => title.startsWith(service))) return "";
    return sentence.replace("{titles}", from.join(", ")).replace("{community}", people.name);
  }

  function usuallyListed(people, words) {
    const at = Math.log(Math.max(words, 1)), [steps, means] = people.listed;
    const k = steps.findIndex((step) => step >= at);
    if (k <= 0) return means.at(k);
    return means[k - 1] + ((means[k] - means[k - 1]) * (at - steps[k - 1])) / (steps[k] - steps[k - 1]);
  }

  function measured(people, texts) {
    if (texts.length < given.min_posts)
      throw new Refusal(`Here ${texts.length === 1 ? "is" : "are"} ${count(texts.length, "post")}; it takes ${given.min_posts} to tell anything.`);
    const posts = texts.map((text) => summed([tokens(text).map((token) => [token, 1])]));
    const cut = Math.floor((posts.length + 1) / 2), all = summed(posts);
    const [first, second] = [posts.slice(0, cut), posts.slice(cut)].map((half) => unit(summed(half), people));
    const words = [...all.values()].reduce((a, b) => a + b, 0);
    const told = probabilities(rehearsed(people, posts), words);
    return {
      posts: posts.length,
      words,
      told,
      cut,
      takes: postsItTakes(told),
      doubt: doubt(people, posts),
      alike: writeAlike(people, all),
      away: withoutNames(sharedWords(first, second), mentioned(texts))
        .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, MOST_WORDS),
    };
  }

  // Showing it

  const percent = (p) => (p < 0.01 ? "under 1 %" : p > 0.99 ? "over 99 %" : `${Math.round(100 * p)} %`);
  const element = (name, text = "", kind = "") => Object.assign(document.createElement(name), { textContent: text, className: kind });
  const count = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;

  function shown(found, people) {
    const decides = found.told.find((one) => one.n === given.decides) ?? found.told.at(-1);
    const measuredLevel = decides.probability > given.at_risk ? "at risk" : decides.probability > given.watch ? "watch" : "well hidden";
    const takes = found.takes > found.posts ? "more posts than you wrote" : count(found.takes, "post");
    const parts = [element("h2", "How findable are you?"), element("p", found.doubt ? "cannot tell" : measuredLevel, "level")];
    if (found.doubt) parts.push(element("p", `${asSentence(found.doubt)}.`, "answer"), element("p", `${asSentence(given.foreign.remedy)} of incrowd assess. What follows would hold among people of the card.`));
    parts.push(element("p", `Somebody who has read ${decides.n} of your posts elsewhere would find you among ${people.people.toLocaleString("en")} people (${people.name}) about ${percent(decides.probability)} of the time. To be right half of the time takes ${takes}.${reservations(found, decides)}`, found.doubt ? "" : "answer"));
    const list = element("ul", "", "odds");
    for (const one of found.told) {
      const row = element("li"), track = element("div", "", "track"), bar = element("div");
      bar.style.width = `${100 * one.probability}%`;
      track.append(bar);
      row.append(element("span", `${count(one.n, "post")} read`), track, element("span", `${percent(one.probability)} (${percent(one.low).replace(/ %$/, "")} to ${percent(one.high)})`, "amount"));
      if (one.n > found.cut) row.append(element("span", "not tried with so many: carried on from fewer", "reserved"));
      list.append(row);
    }
    parts.push(list);
    if (!found.doubt) parts.push(...reasons(found, people));
    const alike = found.alike === null ? "" : ` People who write as you do, you included: about ${found.alike.toLocaleString("en")} of ${(people.people + 1).toLocaleString("en")}.`;
    parts.push(element("p", `Read: ${count(found.posts, "post")}, ${count(found.words, "word")} that count.${alike}`, "note"));
    return parts;
  }

  // What a number rests on, in the words of incrowd assess.
  function reservations(found, one) {
    const untried = given.carried_on.replace("{posts}", found.posts.toLocaleString("en"));
    return one.n > found.cut ? untried : "";
  }

  function reasons(found, people) {
    const parts = [element("h2", "What gives you away"), element("p", "Words that you use again and again and others rarely do, the strongest first:")];
    const ranked = element("ol");
    for (const [word] of found.away) {
      if (word === SOMEBODY) {
        ranked.append(element("li", SOMEBODY));
        continue;
      }
      const place = people.place.get(word);
      const users = place === undefined ? "not in the card: hardly anybody uses it" : `used by ${percent(people.users[place])} of people`;
      ranked.append(element("li", `“${word}”, ${users}`));
    }
    return [...parts, ranked];
  }

  const at = (id) => document.getElementById(id);
  let texts_ = null, found_ = [];

  // Does something that may fail; whatever fails, a sentence says so, and nothing of a former answer stays.
  async function trying(what) {
    at("problem").textContent = "";
    at("result").replaceChildren();
    try {
      await what();
    } catch (problem) {
      at("problem").textContent = problem instanceof Refusal ? problem.message : `This could not be read or measured: the file may be damaged, or larger than this browser can hold. ${KINDS}`;
    }
    at("working").textContent = "";
  }

  async function answer() {
    const people = await community(at("community")?.value ?? given.communities[0].name);
    const parts = shown(measured(people, texts_), people), warning = elsewhere(people, found_);
    if (warning) parts.splice(2, 0, element("p", `${asSentence(warning)}. ${asSentence(given.elsewhere.remedy)} of incrowd assess.`, "reserved"));
    at("result").replaceChildren(...parts);
  }

  // Only the posts of one account are measured; somebody else's name is never shown.
  async function answerAbout(name) {
    texts_ = null;
    texts_ = inOrder(own(found_, name));
    if (!texts_.length) throw new Refusal(`No posts were found in this file. ${KINDS}`);
    await answer();
  }

  function open(files) {
    at("working").textContent = "Reading…";
    at("whose").hidden = true;
    at("account").value = "";
    return trying(async () => {
      texts_ = null;
      found_ = [];
      for (const file of files) found_ = found_.concat(await read(file));
      at("whose").hidden = accounts(found_) < 2;
      await answerAbout();
    });
  }

  at("working").textContent = "";
  at("file").addEventListener("change", (event) => event.target.files.length && open(event.target.files));
  at("community")?.addEventListener("change", () => texts_ && trying(answer));
  at("whose").addEventListener("submit", (event) => {
    event.preventDefault();
    trying(() => answerAbout(at("account").value.trim()));
  });
  for (const name of ["dragover", "dragleave", "drop"])
    addEventListener(name, (event) => {
      event.preventDefault();
      document.body.classList.toggle("over", name === "dragover");
      if (name === "drop" && event.dataTransfer.files.length) open(event.dataTransfer.files);
    });

  // For whoever wants the numbers rather than the page.
  window.incrowd = { tokens, measure: async (texts, name) => measured(await community(name ?? given.communities[0].name), texts), read, inOrder };
})();
