/* Copyright: (c) 2026, the cluster.compute authors */
/* SPDX-License-Identifier: GPL-3.0-or-later */
"use strict";
(() => {
  // Seconds. The page is loaded again, so that it shows what a timer has written since.
  const RELOAD = 60, OLD = 900;
  const root = document.documentElement, search = document.getElementById("search"), owner = document.getElementById("owner");
  const buttons = [...document.querySelectorAll("[data-filter]")], times = [...document.querySelectorAll("time")];
  const rows = [...document.querySelectorAll("[data-row]")];
  const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
  // What is chosen is in the address, so that it stays when the page is loaded again.
  const chosen = new URLSearchParams(location.hash.slice(1));

  const span = (seconds) => {
    const units = [[86400, "d"], [3600, "h"], [60, "min"]];
    const [size, unit] = units.find(([size]) => seconds >= size) || [1, "s"];
    return Math.floor(seconds / size) + " " + unit;
  };

  const showTimes = () => {
    const now = Date.now() / 1000;
    for (const time of times) {
      const passed = now - Number(time.dataset.at);
      if ("left" in time.dataset) time.textContent = passed < 0 ? "in " + span(-passed) : "now";
      else time.textContent = span(Math.max(0, passed)) + " ago";
    }
    const made = document.querySelector(".made"), age = now - Number(made.querySelector("time").dataset.at);
    made.classList.toggle("old", age > OLD);
  };

  const matches = (row, words) =>
    (!chosen.get("state") || row.dataset.state === chosen.get("state")) &&
    (!chosen.get("owner") || row.dataset.owner === chosen.get("owner")) &&
    words.every((word) => texts.get(row).includes(word));

  const showRows = () => {
    const words = (chosen.get("search") || "").toLowerCase().split(/\s+/).filter(Boolean);
    for (const table of document.querySelectorAll("table.sessions, table.waiting")) {
      const own = [...table.querySelectorAll("[data-row]")];
      for (const row of own) row.hidden = !matches(row, words);
      const left = own.filter((row) => !row.hidden).length, section = table.closest("section");
      section.querySelector(".count").textContent = left === own.length ? String(left) : left + " of " + own.length;
    }
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.filter === (chosen.get("state") || "")));
  };

  const choose = (name, value) => {
    if (value) chosen.set(name, value);
    else chosen.delete(name);
    history.replaceState(null, "", "#" + chosen);
    showRows();
  };

  const showTheme = (theme) => {
    if (theme) root.dataset.theme = theme;
  };

  // A browser may refuse to store anything for a page that is a file.
  const stored = (value) => {
    try {
      if (value) localStorage.setItem("theme", value);
      return localStorage.getItem("theme");
    } catch {
      return value;
    }
  };

  search.value = chosen.get("search") || "";
  owner.value = chosen.get("owner") || "";
  if (owner.selectedIndex < 0) owner.value = "";
  for (const event of ["input", "change"]) search.addEventListener(event, () => choose("search", search.value));
  owner.addEventListener("change", () => choose("owner", owner.value));
  for (const button of buttons) button.addEventListener("click", () => choose("state", button.dataset.filter));
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    showTheme(dark ? "light" : "dark");
    stored(root.dataset.theme);
  });
  showTheme(stored());
  showTimes();
  showRows();
  setInterval(showTimes, 10000);
  setInterval(() => {
    const busy = document.activeElement === search || document.querySelector("details[open]") || String(getSelection());
    if (!document.hidden && !busy) location.reload();
  }, RELOAD * 1000);
})();
