// SPDX-License-Identifier: Apache-2.0

// The tree of functions: what of it is shown, in which rows, and by which classes.

const MOST_MARKS = 3; // classes that a row names

// tallyOf counts the targets of each node that are in, the classes that have it, and the first of these.
const tallyOf = (data, shownOf, isAll) => {
  const { functions, classes, threads } = data, n = functions.count + 1;
  const targets = isAll ? functions.targets : new Int32Array(n), count = new Int32Array(n), marks = new Int32Array(n * MOST_MARKS).fill(-1), last = new Int32Array(n).fill(-1);
  let whole = 0, all = 0;
  for (const { i, unread } of classes) {
    if (unread !== '' || shownOf[i] === 0) {
      continue;
    }
    whole += shownOf[i];
    all++;
    for (let t = threads.from[i]; t < threads.from[i + 1]; t++) {
      for (let node = threads.node[t]; node > 0 && last[node] !== i; node = functions.parent[node]) {
        last[node] = i;
        if (count[node] < MOST_MARKS) {
          marks[node * MOST_MARKS + count[node]] = i;
        }
        count[node]++;
        if (!isAll) {
          targets[node] += shownOf[i];
        }
      }
    }
  }
  return { targets, count, marks, whole, all };
};

// pathOf marks the nodes that lead to the stacks of a class: 1, and 2 on the way to where it parts from the others,
// or to all where it does not part.
const pathOf = (data, i) => {
  const { functions, threads, classes } = data, isOn = new Uint8Array(functions.count + 1);
  if (i < 0) {
    return isOn;
  }
  const mark = (from, as) => {
    for (let node = from; node > 0 && isOn[node] < as; node = functions.parent[node]) {
      isOn[node] = as;
    }
  };
  const { parting } = classes[i];
  for (let t = threads.from[i]; t < threads.from[i + 1]; t++) {
    mark(threads.node[t], parting ? 1 : 2);
  }
  if (parting) {
    mark(parting.missing ? parting.last : parting.node, 2);
  }
  return isOn;
};

const makeForest = (data) => {
  const { functions } = data, { parent, end, ends, threads } = functions;
  const open = new Set(), unfolded = new Set(); // by the last and the first node of a row
  const own = { tally: null, open, unfolded, rows: [] };

  // below are the calls next to one, or the outermost ones, that are in: the rarest first.
  const below = (node) => {
    const list = [];
    for (let next = node + 1; next < end[node]; next = end[next]) {
      if (own.tally.targets[next] > 0) {
        list.push(next);
      }
    }
    return list.sort((a, b) => own.tally.targets[a] - own.tally.targets[b] || a - b);
  };
  // A row has a call and the ones that it alone leads to, with all its threads.
  const rowOf = (first, level) => {
    let last = first, inside = 0, next = below(first);
    while (!unfolded.has(first) && next.length === 1 && ends[last] === 0 && own.tally.targets[next[0]] === own.tally.targets[last] && threads[next[0]] === threads[last]) {
      last = next[0];
      inside++;
      next = below(last);
    }
    return { first, last, inside, level, below: next };
  };
  own.list = () => {
    const rows = [];
    // The stack is of this function, not of the engine: calls may be very deep.
    const stack = [], siblings = (list, level) => list.forEach((node, k) => stack.push({ node, level, place: list.length - k, of: list.length }));
    siblings(below(0).reverse(), 1);
    while (stack.length > 0) {
      const { node, level, place, of } = stack.pop(), row = Object.assign(rowOf(node, level), { place, of });
      rows.push(row);
      if (row.below.length > 0 && open.has(row.last)) {
        siblings(row.below.reverse(), level + 1);
        row.below.reverse();
      }
    }
    own.rows = rows;
    return rows;
  };
  // reveal opens what leads to a node.
  own.reveal = (node) => {
    for (let up = parent[node]; up > 0; up = parent[up]) {
      open.add(up);
    }
  };
  // isIn says whether a node is in a row, and rowAt which row has it; -1: none.
  own.isIn = ({ first, last }, node) => first <= node && node <= last && last < end[node];
  own.rowAt = (node) => own.rows.findIndex((row) => own.isIn(row, node));

  // openWhereClassesPart opens what leads to where the first classes part, or, where none parts, the outer calls.
  own.openWhereClassesPart = (most) => {
    const parting = data.classes.filter((c) => c.parting);
    for (const { parting: { last, here } } of parting.slice(0, most)) {
      if (!open.has(last || here) && own.list().length >= most) {
        break;
      }
      own.reveal(last || here);
      open.add(last || here);
    }
    for (let i = 0; parting.length === 0 && own.list().length < most / 2 && i < own.rows.length; i++) {
      open.add(own.rows[i].last);
    }
  };
  return own;
};
