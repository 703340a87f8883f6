"use strict";
// Three small helps: progress that moves, forms that answer while one changes them, files that can be dropped.
// Every page works without this file.

const WAIT = 400; // after the last key or tick, in milliseconds

function follow(box) {
  const bar = box.querySelector("progress");
  const words = box.querySelector("[data-what]");
  async function look() {
    let job;
    try {
      const answer = await fetch(box.dataset.progress);
      if (!answer.ok) return;
      job = await answer.json();
    } catch {
      words.textContent = "The server does not answer. Is it still running?";
      setTimeout(look, 4 * WAIT);
      return;
    }
    if (job.url) { location.replace(job.url); return; }
    if (job.state === "failed" || job.state === "stopped") { location.reload(); return; }
    if (words.textContent !== job.what) words.textContent = job.what;
    if (job.share === null) bar.removeAttribute("value");
    else { bar.max = 1; bar.value = job.share; }
    setTimeout(look, WAIT);
  }
  look();
}

function live(form) {
  const target = document.querySelector(form.dataset.live);
  let timer, running;
  async function ask() {
    running?.abort();
    running = new AbortController();
    const mine = running;
    target.setAttribute("aria-busy", "true");
    try {
      const answer = await fetch(form.getAttribute("action"), {
        method: "POST", headers: { "x-part": "1" }, body: new URLSearchParams(new FormData(form)), signal: mine.signal,
      });
      // Our own server's template, already escaped; the page's policy lets no script in it run.
      const part = await answer.text();
      if (mine === running && answer.headers.has("x-part")) target.innerHTML = part;
      else if (mine === running) target.textContent = "The server no longer knows this page. Reload it.";
    } catch (problem) {
      if (problem.name !== "AbortError") target.textContent = "The server does not answer. Is it still running?";
    } finally {
      if (mine === running) target.removeAttribute("aria-busy");
    }
  }
  function soon() {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT);
  }
  form.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(timer); ask(); });
  form.addEventListener("input", soon);
  form.addEventListener("reset", soon);
}

function droppable(form) {
  const input = form.querySelector("input[type=file]");
  form.addEventListener("dragover", (event) => { event.preventDefault(); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    if (event.dataTransfer.files.length) input.files = event.dataTransfer.files;
  });
}

document.querySelectorAll("[data-progress]").forEach(follow);
document.querySelectorAll("form[data-live]").forEach(live);
document.querySelectorAll("form[data-drop]").forEach(droppable);
