// Tables of the docs sort by a column when its head is clicked: numbers as numbers, a second click the other way.
document.addEventListener("click", (event) => {
  const head = event.target.closest("th");
  if (!head) return;
  const body = head.closest("table").tBodies[0];
  const column = head.cellIndex;
  const way = head.dataset.way === "down" ? 1 : -1;
  head.dataset.way = way === 1 ? "up" : "down";
  const key = (row) => row.cells[column].textContent.trim();
  const number = (text) => Number.parseFloat(text.replaceAll(",", ""));
  const compare = (one, other) => {
    const [a, b] = [number(key(one)), number(key(other))];
    if (Number.isNaN(a) && Number.isNaN(b)) return way * key(one).localeCompare(key(other));
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) ? 1 : -1;
    return way * (a - b);
  };
  body.append(...[...body.rows].sort(compare));
});
