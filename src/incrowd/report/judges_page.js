"use strict";
// The answers stay on this page until the judge saves them as a file.
const data = JSON.parse(document.getElementById("data").textContent);

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function choice(topic, value, text) {
  const input = element("input", { type: "radio", name: `sensitive-${topic}`, value });
  input.addEventListener("change", count);
  return element("label", {}, input, ` ${text} `);
}

function question(words, topic) {
  const domains = data.domains.map((name) => element("option", { value: name, textContent: name }));
  const select = element("select", { id: `domain-${topic}` }, element("option", { value: "", textContent: "choose a domain" }), ...domains);
  select.setAttribute("aria-label", `domain of topic ${topic}`);
  select.addEventListener("change", count);
  const legend = element("legend", { textContent: `Topic ${topic}` });
  return element("fieldset", {}, legend, element("p", { textContent: words.join(", ") }),
    choice(topic, "1", "sensitive"), choice(topic, "0", "not sensitive"), select);
}

function answers() {
  return data.topics.map((_, topic) => ({
    topic,
    sensitive: document.querySelector(`input[name="sensitive-${topic}"]:checked`)?.value,
    domain: document.getElementById(`domain-${topic}`).value,
  })).filter((answer) => answer.sensitive !== undefined && answer.domain !== "");
}

function count() {
  document.getElementById("done").textContent = `${answers().length} of ${data.topics.length} answered`;
}

function quoted(text) {
  return `"${text.replaceAll('"', '""')}"`;
}

function save() {
  const judge = document.getElementById("judge").value.trim();
  if (judge === "") {
    document.getElementById("done").textContent = "Please give a name or number for yourself first.";
    return;
  }
  const rows = answers().map((a) => [quoted(judge), a.topic, a.sensitive, quoted(a.domain)].join(","));
  const csv = ["judge,topic,sensitive,domain", ...rows].join("\n") + "\n";
  const link = element("a", { href: `data:text/csv;charset=utf-8,${encodeURIComponent(csv)}`, download: "votes.csv" });
  document.body.append(link);
  link.click();
  link.remove();
}

document.getElementById("questions").append(...data.topics.map(question));
document.getElementById("save").addEventListener("click", save);
count();
