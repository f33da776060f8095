"use strict";
const missing = "\u2013";
const many = 200; // rows

function sortable(text) { // all numbers of a cell: it may hold several, such as 322\u2013323 or 8\u00d78\u00d71
  if (text === missing || text === "") return null;
  const numbers = text.replaceAll(",", "").match(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/gi);
  return numbers === null ? text : numbers.map(Number);
}

const alphabet = new Intl.Collator("en", { numeric: true });

function compared(a, b, sign) {
  if (a === null || b === null) return (a === null) - (b === null); // what was not captured is last both ways
  if (Array.isArray(a) && Array.isArray(b)) {
    const at = a.findIndex((number, at) => number !== b[at]);
    return at === -1 ? sign * (a.length - b.length) : at === b.length ? sign : sign * (a[at] - b[at]);
  }
  return sign * alphabet.compare(String(a), String(b));
}

function sort(head) {
  const table = head.closest("table"), body = table.tBodies[0], at = head.cellIndex;
  const isNumber = head.classList.contains("n");
  const before = head.getAttribute("aria-sort");
  const down = before === "none" ? isNumber : before === "ascending"; // numbers: the largest first
  const keys = [...body.rows].map(row => {
    const text = row.cells[at].textContent;
    return [isNumber ? sortable(text) : text === missing ? null : text, row];
  });
  keys.sort((a, b) => compared(a[0], b[0], down ? -1 : 1));
  for (const other of head.parentNode.cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.replaceChildren(...keys.map(([, row]) => row));
}

function lighten(table) {
  // Rows of a long table become blocks, which a browser lays out only in sight; columns are as wide as the longest texts
  // need, which a table of these rows alone tells.
  const rows = [...table.tBodies[0].rows], heads = [...table.tHead.rows[0].cells];
  const longest = heads.map((_, at) => {
    const lengths = rows.map(row => row.cells[at].textContent.length);
    return rows[lengths.indexOf(Math.max(...lengths))];
  });
  const probe = table.cloneNode(false), body = document.createElement("tbody");
  probe.removeAttribute("id");
  probe.classList.add("probe");
  body.append(...longest.map(row => row.cloneNode(true)));
  probe.append(table.tHead.cloneNode(true), body);
  document.body.append(probe);
  const widths = [...probe.tHead.rows[0].cells].map(cell => Math.ceil(cell.getBoundingClientRect().width));
  probe.remove();
  table.style.setProperty("--columns", widths.map(width => `minmax(${width}px, ${width}fr)`).join(" "));
  table.style.setProperty("--width", `${widths.reduce((sum, width) => sum + width)}px`);
  table.classList.add("long");
}

function filter(input) {
  const table = document.getElementById(input.dataset.for), wanted = input.value.toLowerCase();
  const rows = [...table.tBodies[0].rows];
  let shown = 0;
  for (const row of rows) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted);
    shown += !row.hidden;
  }
  const all = rows.length === 1 ? "1 row" : `${rows.length} rows`;
  document.querySelector(`.count[data-for="${table.id}"]`).textContent = wanted ? `${shown} of ${all}` : all;
}

async function copy(button) {
  const source = button.parentNode.querySelector("pre code");
  try {
    await navigator.clipboard.writeText(source.textContent);
  } catch {
    const range = document.createRange(); // a page from a file may not have the clipboard: select, then copy
    range.selectNodeContents(source);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy SQL"; }, 1500);
}

function turn() {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = root.dataset.theme ?? (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
}

// Sections out of sight are laid out only when the browser has time, so that a long page shows at once. Until then their
// heights are guesses, and a link would lead to where its target is not: a link lays out all that are left.
const guessed = [...document.querySelectorAll("section")];

function settle() {
  for (const section of guessed.splice(0)) section.classList.add("settled");
}

function settleIdly(time) {
  while (guessed.length > 0 && time.timeRemaining() > 0) {
    const section = guessed.shift();
    section.classList.add("settled");
    section.getBoundingClientRect();
  }
  if (guessed.length > 0) requestIdleCallback(settleIdly);
}

function reveal() { // a link into a folded part unfolds it
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const folded = target?.closest("details");
  if (folded) { folded.open = true; target.scrollIntoView(); }
}

function arrive() { // at the part that the page's address names
  if (location.hash === "") return;
  settle();
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

document.addEventListener("click", event => {
  if (event.target.closest('a[href^="#"]')) settle(); // before the browser follows it
  const button = event.target.closest("button");
  if (button === null) return;
  if (button.id === "theme") turn();
  else if (button.classList.contains("copy")) copy(button);
  else if (button.classList.contains("whole")) {
    const open = document.getElementById(button.dataset.for).classList.toggle("open");
    button.setAttribute("aria-pressed", String(open));
  } else if (button.closest("th")) sort(button.closest("th"));
});
document.addEventListener("input", event => {
  if (event.target.matches("input[data-for]")) filter(event.target);
});
addEventListener("hashchange", reveal);
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details:not(.sql, .peer, .meanings)")) part.open = true;
  for (const image of document.images) image.loading = "eager"; // those below the window were not needed so far
});
for (const table of document.querySelectorAll("table")) {
  if (table.tBodies[0].rows.length > many) lighten(table);
}
if (matchMedia("(max-width: 1099px)").matches) document.querySelector("nav details").open = false;
reveal();
arrive();
if ("requestIdleCallback" in window) requestIdleCallback(settleIdly);
else addEventListener("load", settle);
