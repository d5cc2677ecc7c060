// The table: DataTables shows a page at a time and asks for its rows; the sorting is done here, on whole columns.

import { scriptAddress } from "./data.js";
import { element, numeral, tokenElement } from "./tokens.js";

const library = scriptAddress("datatables.bin").then((address) => import(address)).then((module) => module.default);
const WORDING = {
  info: "_START_ to _END_ of _TOTAL_",
  infoEmpty: "",
  infoFiltered: "",
  zeroRecords: "No token matches.",
  thousands: ",",
};
let shown = null;

/** Standard deviation of the percentile over models, by row. */
function spread(scans) {
  const n = scans[0].percentile.length;
  const values = new Float32Array(n);
  for (let row = 0; row < n; row++) {
    let sum = 0;
    let squares = 0;
    for (const { percentile } of scans) {
      sum += percentile[row];
      squares += percentile[row] ** 2;
    }
    values[row] = Math.sqrt(Math.max(0, squares / scans.length - (sum / scans.length) ** 2));
  }
  return values;
}

/** The columns of a state: key, head, whether sorting by it begins with its highest values, cell(row), sorted(). */
export function columns(set, words, state, choose) {
  const scans = () => Promise.all(state.models.map((model) => set.scan(model, state.prompt)));
  const token = {
    key: "token",
    head: "token",
    cell: (row) => tokenElement(words, row, choose),
    sorted: async () => {
      const rows = Uint32Array.from(words.tokens.keys());
      return rows.sort((one, other) => (words.tokens[one] < words.tokens[other] ? -1 : words.tokens[one] > words.tokens[other] ? 1 : one - other));
    },
  };
  const ranks = state.models.map((model) => ({
    key: model,
    head: model,
    number: true,
    cell: (row) => {
      const scan = set.ready(model, state.prompt);
      if (!scan) return element("span", {}, "…");
      return element("span", {}, numeral(scan.rank[row]), element("br"), element("small", {}, numeral(scan.reward[row], Math.min(scan.decimals, 3))));
    },
    sorted: async () => (await set.scan(model, state.prompt)).order,
  }));
  let spreads = null;
  const values = async () => (spreads ??= spread(await scans()));
  const disputed = {
    key: "spread",
    head: "spread",
    number: true,
    falling: true,
    cell: (row) => element("span", {}, spreads ? numeral(spreads[row], 1) : "…"),
    ready: values,
    sorted: async () => {
      const by = await values();
      return Uint32Array.from(words.tokens.keys()).sort((one, other) => by[other] - by[one] || one - other);
    },
  };
  return [token, ...ranks, ...(state.models.length > 1 ? [disputed] : [])];
}

/** The matching rows in the order that a state asks for. */
async function sortedRows(column, dir, matches, total) {
  const order = await column.sorted();
  const turned = (dir === "desc") !== Boolean(column.falling) ? order.slice().reverse() : order;
  if (!matches) return turned;
  const wanted = new Uint8Array(total);
  for (const row of matches) wanted[row] = 1;
  return turned.filter((row) => wanted[row]);
}

/**
 * Show the table of a state in `holder`. When a reader sorts or pages, `moved` is told; nothing is built anew, so that
 * the keyboard's focus stays where it is. Resolves when all columns have come in.
 */
export async function showTable(holder, { set, words, state, matches, choose, moved }) {
  const DataTable = await library;
  DataTable.ext.errMode = "throw";
  const all = columns(set, words, state, choose);
  const place = Math.max(0, all.findIndex((column) => column.key === state.sort));
  const heads = all.map((column) => element("th", { scope: "col", class: column.number ? "number" : "" }, column.head));
  const made = element("table", { class: "explorer-table" }, element("thead", {}, element("tr", {}, ...heads)));
  const count = matches ? matches.length : set.tokens;
  state.page = Math.min(state.page, Math.max(1, Math.ceil(count / state.length)));
  await all[place].sorted();
  const complete = state.models.every((model) => set.ready(model, state.prompt));
  const rest = () => Promise.all(all.map((column) => column.ready?.()));
  if (complete) await rest();
  shown?.destroy();
  holder.replaceChildren(made);
  const drawn = new Promise((resolve) => made.addEventListener("explorer-drawn", resolve, { once: true }));
  const table = (shown = new DataTable(made, {
    serverSide: true,
    searching: false,
    autoWidth: false,
    orderMulti: false,
    pageLength: state.length,
    displayStart: (state.page - 1) * state.length,
    order: [[place, state.dir]],
    layout: { topStart: null, topEnd: null, bottomStart: "info", bottomEnd: "paging" },
    language: WORDING,
    columns: all.map((column) => ({
      data: null,
      className: column.number ? "number" : "",
      orderSequence: column.falling ? ["desc", "asc"] : ["asc", "desc"],
      render: (_, type, item) => (type === "display" ? column.cell(item.row) : item.row),
    })),
    ajax: async ({ draw, start, length, order }, callback) => {
      const [{ column, dir }] = order.length ? order : [{ column: place, dir: state.dir }];
      const rows = await sortedRows(all[column], dir, matches, set.tokens);
      moved({ sort: all[column].key, dir, page: start / length + 1 });
      const data = Array.from(rows.slice(start, start + length), (row) => ({ row }));
      callback({ draw, recordsTotal: set.tokens, recordsFiltered: rows.length, data });
      made.dispatchEvent(new Event("explorer-drawn"));
    },
  }));
  await drawn;
  if (complete) return;
  await Promise.all(state.models.map((model) => set.scan(model, state.prompt)));
  await rest();
  if (shown === table) table.draw("page"); // again, with the columns that have come in
}
