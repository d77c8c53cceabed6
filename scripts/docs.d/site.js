// The search of the site: all sections of all pages are in `pages`, which index.js has. No server is asked.
"use strict";

const common = new Set(("a an and are at be by can do does for from have how i if in into is it its me my of on "
  + "or s so that the then there this to was what when where which who why with you your").split(" "));

// The words of a text, in lower case, without the ends of plurals and verbs.
function stems(text) {
  const words = text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
  return words.map(word => word.replace(word.length > 4 ? /(?:ings?|ies|es|ed|s)$/u : /s$/u, ""));
}

let sections = null;

function prepare() {
  sections = [];
  for (const page of pages) {
    for (const [id, title, text] of page.sections) {
      const counts = new Map();
      for (const word of stems(text)) counts.set(word, (counts.get(word) || 0) + 1);
      sections.push({
        page: page.page, name: page.title, id, title, text, weight: page.weight, counts,
        inTitle: new Set(stems(title)), inName: new Set(stems(page.title)),
      });
    }
  }
}

// The sections that have most of the words, those that are rare first.
function search(query) {
  if (!sections) prepare();
  const all = stems(query);
  const words = all.filter(word => !common.has(word));
  if (words.length === 0) words.push(...all);
  if (words.length === 0) return [];
  const rarity = words.map(word => {
    let count = 1;
    for (const each of sections) if (each.counts.has(word) || each.inTitle.has(word)) count += 1;
    return Math.log(1 + sections.length / count);
  });
  const found = [];
  for (const each of sections) {
    let score = 0;
    let matches = 0;
    words.forEach((word, i) => {
      let part = Math.min(each.counts.get(word) || 0, 4) / 4;
      if (each.inTitle.has(word)) part += 4;
      if (each.inName.has(word)) part += 1;
      if (part === 0) {
        for (const other of each.counts.keys()) if (other.startsWith(word)) { part = 0.2; break; }
      }
      if (part > 0) matches += 1;
      score += part * rarity[i];
    });
    if (matches > 0) found.push({ ...each, score: score * (matches / words.length) ** 2 * each.weight, words });
  }
  found.sort((a, b) => b.score - a.score);
  return found.filter(each => each.score > 0).slice(0, 20);
}

// A part of the text around the first of the words.
function excerpt({ text, words }) {
  const lower = text.toLowerCase();
  let at = -1;
  for (const word of words) {
    at = lower.indexOf(word);
    if (at >= 0) break;
  }
  const first = Math.max(0, at - 60);
  return (first > 0 ? "…" : "") + text.slice(first, first + 200) + (first + 200 < text.length ? "…" : "");
}

function show(query) {
  const list = document.getElementById("results");
  const found = query.trim() === "" ? [] : search(query);
  list.hidden = query.trim() === "";
  list.replaceChildren();
  for (const each of found) {
    const item = document.createElement("li");
    const link = document.createElement("a");
    link.href = each.id ? `${each.page}.html#${each.id}` : `${each.page}.html`;
    link.textContent = each.title === each.name ? each.name : `${each.name} › ${each.title}`;
    const text = document.createElement("p");
    text.textContent = excerpt(each);
    item.append(link, text);
    list.append(item);
  }
  if (!list.hidden && found.length === 0) list.append("Nothing is found.");
}

const field = document.getElementById("search");
field.addEventListener("input", () => show(field.value));
field.addEventListener("keydown", event => {
  if (event.key === "Escape") {
    field.value = "";
    show("");
  }
  const first = document.querySelector("#results a");
  if (event.key === "Enter" && first) first.click();
});
document.addEventListener("click", event => {
  if (event.target.closest("#results a")) {
    field.value = "";
    show("");
  }
});
document.addEventListener("keydown", event => {
  if (event.key === "/" && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  }
});
