"use strict";
// The client of paper 002 in a browser: the same arithmetic as incrowd.microdata.score, nothing is sent.
(() => {
  const LARGEST = 1 - 1e-9, SMALLEST = 1e-12, NOBODY = -46, HALVINGS = 50, MOST_HURTING = 10;
  const given = JSON.parse(document.getElementById("data").textContent);

  // Reading statistics and items

  const flat = (bands) => {
    const map = new Map();
    for (const band of bands) for (const item of band.items) map.set(item, band.people);
    return map;
  };

  function prepare(statistics) {
    if (!statistics || statistics.format !== "incrowd-microdata-statistics" || statistics.version !== 1)
      throw new Error("This is not a statistics file of version 1.");
    const centres = statistics.groups.map((group) => group.centre);
    return {
      ...statistics,
      popularity: flat(statistics.popularity),
      taste: statistics.taste.map((one) => ({ ...one, popularity: flat(one.popularity) })),
      borders: centres.slice(1).map((centre, k) => (centre + centres[k]) / 2),
    };
  }

  // A list as one item a line, a JSON array, or the column "item" of a table with a header.
  function parseItems(text) {
    const trimmed = text.trim();
    if (trimmed.startsWith("[")) {
      const list = JSON.parse(trimmed);
      return tidy(list.map((one) => String(one !== null && typeof one === "object" ? one.item : one)));
    }
    const lines = trimmed.split(/\r?\n/);
    for (const mark of ["\t", ",", ";"]) {
      const column = lines[0].split(mark).map((name) => name.trim().toLowerCase().replace(/:.*$/, "")).indexOf("item");
      if (column >= 0 && lines[0].includes(mark))
        return tidy(lines.slice(1).map((line) => unquote(line.split(mark)[column] ?? "")));
    }
    return tidy(lines);
  }

  const unquote = (cell) => cell.trim().replace(/^"(.*)"$/, "$1").replace(/""/g, '"');
  const tidy = (list) => [...new Set(list.map((item) => item.trim()).filter((item) => item !== ""))];

  // The expected crowd

  const ROUND = { "half-up": (x) => Math.floor(x + 0.5), floor: Math.floor, ceil: Math.ceil };

  function knownSizes(items, knowledge) {
    const wanted = knowledge.percents.map((p) => ROUND[knowledge.rounding]((p * items) / 100)).concat(knowledge.items);
    const weights = knowledge.weights ?? wanted.map(() => 1);
    const total = weights.reduce((a, b) => a + b, 0);
    const merged = new Map();
    wanted.forEach((size, k) => {
      const s = Math.min(Math.max(size, knowledge.minimum), items);
      merged.set(s, (merged.get(s) ?? 0) + weights[k] / total);
    });
    return [...merged].filter(([, weight]) => weight > 0).sort((a, b) => a[0] - b[0]);
  }

  const logistic = (x) => 1 / (1 + Math.exp(-x));

  // p(item | class) = logistic(b + level), with b such that the classes together have the popularity p.
  function classProbabilities(p, shares, levels) {
    const known = new Map();
    const highest = Math.max(...levels), lowest = Math.min(...levels);
    return p.map((value) => {
      const q = Math.min(Math.max(value, SMALLEST), LARGEST);
      if (!known.has(q)) {
        const logit = Math.log(q) - Math.log1p(-q);
        let low = logit - highest, high = logit - lowest;
        for (let k = 0; k < HALVINGS; k++) {
          const middle = (low + high) / 2;
          const sum = shares.reduce((total, share, c) => total + share * logistic(middle + levels[c]), 0);
          if (sum > q) high = middle; else low = middle;
        }
        const b = (low + high) / 2;
        known.set(q, levels.map((level) => logistic(b + level)));
      }
      return known.get(q);
    });
  }

  // log of e_s(p) / C(n, s) for s = 1..most: positive terms only, rescaled at every step.
  function symmetricMeans(p, most) {
    const n = p.length, sorted = Float64Array.from(p).sort();
    let below = new Float64Array(n).fill(1), logScale = 0, logChoices = 0;
    const out = new Float64Array(most + 1);
    for (let s = 1; s <= most; s++) {
      const next = new Float64Array(n);
      let sum = 0;
      for (let j = 0; j < n; j++) {
        next[j] = sum;
        sum += sorted[j] * below[j];
      }
      for (let j = 0; j < n; j++) next[j] /= sum;
      below = next;
      logScale += Math.log(sum);
      logChoices += Math.log(n - s + 1) - Math.log(s);
      out[s] = logScale - logChoices;
    }
    return out;
  }

  // rows: one array of probabilities a class; crowd: people in each class.
  function expectedOthers(rows, crowd, knowledge) {
    const sizes = knownSizes(rows[0].length, knowledge);
    let total = 0;
    rows.forEach((p, c) => {
      const mean = p.reduce((a, b) => a + b, 0) / p.length;
      const kept = sizes.filter(([s]) => Math.log(crowd[c]) + s * Math.log(mean) >= NOBODY);
      if (!kept.length) return;
      const means = symmetricMeans(p, kept[kept.length - 1][0]);
      for (const [s, weight] of kept) total += crowd[c] * weight * (s === 0 ? 1 : Math.exp(means[s]));
    });
    return total;
  }

  function classModel(items, people, statistics) {
    const users = Math.max(statistics.users, 1), levels = statistics.activity.levels;
    const transpose = (columns) => levels.map((_, c) => columns.map((column) => column[c]));
    if (!statistics.taste.length) {
      const shares = statistics.activity.shares;
      const columns = classProbabilities(people.map((count) => count / users), shares, levels);
      return { rows: transpose(columns), crowd: shares.map((share) => share * users) };
    }
    const rows = [], crowd = [];
    const listed = statistics.taste.map((one) => items.map((item) => one.popularity.get(item) ?? 0));
    for (const [t, one] of statistics.taste.entries()) {
      const share = items.map((_, k) => {
        if (listed[t][k] > 0) return Math.min(listed[t][k] / one.people, LARGEST);
        const seen = listed.reduce((sum, row) => sum + row[k], 0);
        const room = statistics.taste.reduce((sum, other, o) => sum + (listed[o][k] > 0 ? 0 : other.people), 0);
        return Math.min(Math.max(people[k] - seen, people[k] / 50) / Math.max(room, 1), LARGEST);
      });
      rows.push(...transpose(classProbabilities(share, one.activity_shares, levels)));
      crowd.push(...one.activity_shares.map((part) => part * one.people));
    }
    return { rows, crowd };
  }

  // The score

  function profileOf(list, statistics) {
    const items = tidy(list).sort((a, b) => (a < b ? -1 : 1));
    if (!items.length) throw new Error("The list is empty: there is nothing to score.");
    const unknown = items.map((item) => !statistics.popularity.has(item));
    if (unknown.every(Boolean))
      throw new Error(`Cannot tell: of your ${items.length} item${items.length === 1 ? "" : "s"} none is in these ` +
        "statistics. Is this the right list? If it is, whatever you listed is too rare to be named, and gives you away.");
    const people = items.map((item) => statistics.popularity.get(item) ?? statistics.unlisted);
    return { items, unknown, people, ...classModel(items, people, statistics) };
  }

  function without(profile, dropped) {
    const keep = (_, k) => !dropped.has(k);
    return {
      items: profile.items.filter(keep), unknown: profile.unknown.filter(keep), people: profile.people.filter(keep),
      rows: profile.rows.map((row) => row.filter(keep)), crowd: profile.crowd,
    };
  }

  function paperScore(profile, statistics) {
    const n = profile.items.length, { rare_below, log_base } = statistics.parameters, scale = statistics.scale;
    const rare = profile.items.filter((_, k) => profile.unknown[k] || profile.people[k] < rare_below).length;
    const raw = rare / n + Math.log(n) / Math.log(log_base);
    if (!(scale.raw_max > scale.raw_min)) return { rare, raw, score: null, clamped: false, group: null };
    const free = 1 - (raw - scale.raw_min) / (scale.raw_max - scale.raw_min);
    const score = Math.min(Math.max(free, 0), 1);
    return { rare, raw, score, clamped: score !== free, group: statistics.borders.filter((b) => b < score).length };
  }

  function score(list, statistics) {
    const profile = profileOf(list, statistics), knowledge = statistics.parameters.knowledge;
    const rest = (dropped) => {
      const left = without(profile, new Set(dropped));
      return { score: paperScore(left, statistics).score, others: expectedOthers(left.rows, left.crowd, knowledge) };
    };
    const order = profile.items.map((_, k) => k).sort((a, b) => profile.people[a] - profile.people[b] || a - b);
    const worst = order.slice(0, Math.min(MOST_HURTING, profile.items.length - 1));
    const all = rest(worst);
    return {
      items: profile.items.length,
      unknown: profile.unknown.filter(Boolean).length,
      ...paperScore(profile, statistics),
      others: expectedOthers(profile.rows, profile.crowd, knowledge),
      hurting: worst.map((k) => {
        const left = rest([k]);
        return { item: profile.items[k], people: profile.unknown[k] ? null : profile.people[k],
                 score_without: left.score, others_without: left.others };
      }),
      score_without_all: all.score,
      others_without_all: all.others,
    };
  }

  // The label

  function barBorders(borders) {
    if (borders.length === 0 || borders.length + 1 > given.label.most_split) return borders;
    const edges = [...borders, 1], middles = [];
    for (let k = Math.max(0, edges.length - 1 - Math.min(2, borders.length)); k < edges.length - 1; k++)
      middles.push((edges[k] + edges[k + 1]) / 2);
    return [...borders, ...middles].sort((a, b) => a - b);
  }

  function barWords(count) {
    const words = given.label.words, seven = words["7"];
    return words[count] ?? Array.from({ length: count }, (_, k) => seven[Math.round((k * 6) / (count - 1))]);
  }

  const colourOf = (k, count) =>
    given.label.colours[count === 1 ? 3 : Math.round((k * (given.label.colours.length - 1)) / (count - 1))];

  function element(name, attributes = {}, text = "") {
    const svg = ["svg", "path", "text", "rect", "title", "desc"].includes(name);
    const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== "") made.textContent = text;
    return made;
  }

  function labelOf(result, statistics) {
    const borders = barBorders(statistics.borders), words = barWords(borders.length + 1);
    const paper = result.score === null ? null : words.length - 1 - borders.filter((b) => b < result.score).length;
    if (paper === null || result.others + 1 >= given.label.enough || words.length === 1) return { words, you: paper, paper };
    // The score only compares: nobody who may be below the target is called safe.
    const unsafe = words.findIndex((word) => !word.endsWith("safe") || word === "not safe");
    return { words, you: Math.max(paper, unsafe), paper };
  }

  function drawLabel({ words, you }) {
    const letter = (k) => String.fromCharCode(65 + k), height = 16 + words.length * 42;
    const picture = element("svg", { viewBox: `0 0 460 ${height}`, role: "img", class: "label" });
    picture.append(element("title", {}, you === null ? "cannot tell" : `You: ${letter(you)} ${words[you]}`));
    const scale = words.map((word, k) => `${letter(k)} ${word}`).join(", ");
    picture.append(element("desc", {}, `The scale from best to worst: ${scale}.`));
    words.forEach((word, k) => {
      const y = 8 + k * 42, length = words.length === 1 ? 320 : 150 + (170 * k) / (words.length - 1);
      const { fill, ink } = colourOf(k, words.length);
      picture.append(element("path", { d: `M4 ${y}h${length}l17 17l-17 17h${-length}z`, fill, stroke: "#111" }));
      picture.append(element("text", { x: 16, y: y + 24, fill: ink, "font-size": 19, "font-weight": 700 }, letter(k)));
      picture.append(element("text", { x: 44, y: y + 23, fill: ink, "font-size": 16 }, word));
      if (k === you) {
        picture.append(element("path", { d: `M368 ${y + 17}l18 -17h60v34h-60z`, class: "you" }));
        picture.append(element("text", { x: 394, y: y + 23, class: "you-text", "font-size": 17, "font-weight": 700 }, "you"));
      }
    });
    return picture;
  }

  // The page

  const say = (others) =>
    others < 0.05 ? "nobody else would fit" : others < 0.5 ? "hardly anybody else would fit"
      : others < 1.5 ? "about one other person would fit"
        : `about ${Number(others.toPrecision(2)).toLocaleString("en")} other people would fit`;
  const short = (value) => (value === null ? "–" : value.toFixed(2));
  const people = (others) => (others < 10 ? others.toFixed(1) : Math.round(others).toLocaleString("en"));

  let statistics = prepare(given.statistics);
  const at = (id) => document.getElementById(id);

  function show() {
    const out = at("result");
    out.replaceChildren();
    at("problem").textContent = "";
    if (!at("items").value.trim()) return;
    try {
      present(score(parseItems(at("items").value), statistics), out);
    } catch (error) {
      at("problem").textContent = error instanceof SyntaxError ? "The list starts like JSON but is not." : error.message;
    }
  }

  function present(result, out) {
    const label = labelOf(result, statistics);
    out.append(element("h2", {}, label.you === null ? "Cannot tell" : `You are: ${label.words[label.you]}`));
    out.append(drawLabel(label));
    if (label.you !== label.paper)
      out.append(element("p", {}, `Fewer than ${given.label.enough} people are expected to fit what somebody could ` +
        `know of you, which is too few to be sure of ${given.label.wanted}. Compared with others you hide well (the score alone ` +
        `says “${label.words[label.paper]}”), but nobody should call that safe.`));
    out.append(element("p", {}, `For ${given.adversary}, ${say(result.others)} as well as you, out of ` +
      `${statistics.users.toLocaleString("en")}. ${result.rare} of your ${result.items} items are rare; ` +
      `${result.unknown} are so rare that the statistics do not list them.`));
    if (result.clamped)
      out.append(element("p", { class: "note" }, "Your list lies outside what the provider has seen; the score was cut to its end."));
    if (!result.hurting.length) return;
    const table = element("table"), body = element("tbody"), head = element("tr");
    table.append(element("caption", {}, "What gives you away most, and where you would be without it"));
    ["item", "people who have it", "score without", "others who fit without"].forEach((name, k) =>
      head.append(element("th", k ? { scope: "col", class: "number" } : { scope: "col" }, name)));
    const header = element("thead");
    header.append(head);
    const rows = result.hurting.map((one) => [one.item, one.people === null ? "very few" : `about ${Math.round(one.people)}`,
      short(one.score_without), people(one.others_without)]);
    rows.push(["all of these", "", short(result.score_without_all), people(result.others_without_all)]);
    for (const row of rows) {
      const line = element("tr");
      row.forEach((cell, k) => line.append(element("td", k ? { class: "number" } : {}, cell)));
      body.append(line);
    }
    table.append(header, body);
    out.append(element("p", {}, `Your score now is ${short(result.score)} (0 riskiest, 1 safest), ` +
      `with ${people(result.others)} others who fit.`), table);
  }

  async function take(file) {
    const text = await file.text();
    let parsed = null;
    if (text.trimStart().startsWith("{")) {
      try { parsed = JSON.parse(text); } catch { parsed = null; }
    }
    if (parsed && parsed.format === "incrowd-microdata-statistics") {
      statistics = prepare(parsed);
      at("release").textContent = `release ${parsed.release} of ${parsed.date}`;
    } else at("items").value = text;
    show();
  }

  at("file").addEventListener("change", (event) => { if (event.target.files.length) take(event.target.files[0]); });
  at("items").addEventListener("input", show);
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
  });

  window.incrowd = {
    parseItems,
    score: (list) => score(list, statistics),
    label: (list) => labelOf(score(list, statistics), statistics),
  };
})();
