// SPDX-License-Identifier: Apache-2.0

// The comparison, as the program packed it: see pack.go. Nodes, targets and texts count from 1, and 0 is none;
// classes and variants count from 0.

const NONE = [];
const INLINED = 1, WAVE = 2, GUESS = 4; // of a frame
const MOVES = 1, STILL = 2, CRASHED = 4; // of a thread

// dropUsual takes the parting from classes that differ by facts or builds, and whose stack most others have too.
const dropUsual = (classes, { from, role, node }) => {
  const differ = classes.filter((c) => c.parting && !c.parting.missing && c.facts.length + c.builds.length > 0), have = new Map();
  const read = classes.reduce((sum, c) => c.unread ? sum : sum + c.size, 0);
  differ.forEach(({ parting }) => have.set(`${parting.role} ${parting.node}`, 0));
  classes.forEach((c) => {
    const seen = new Set();
    for (let t = from[c.i]; t < from[c.i + 1] && have.size > 0; t++) {
      const key = `${role[t]} ${node[t]}`;
      if (have.has(key) && !seen.has(key)) {
        seen.add(key);
        have.set(key, have.get(key) + c.size);
      }
    }
  });
  differ.forEach((c) => {
    if (have.get(`${c.parting.role} ${c.parting.node}`) - c.size > (read - c.size) / 2) {
      c.parting = null;
      c.isUsual = true;
    }
  });
};

const readComparison = (columns) => {
  const { number, column } = columns, { texts, byThread } = columns.json();
  texts.unshift('');
  const ints = (n) => column(new Int32Array(n));
  const floats = (n) => column(new Float64Array(n));
  const behind = (n, Kind = Int32Array) => { // of what counts from 1
    const list = new Kind(n + 1);
    column(list.subarray(1));
    return list;
  };
  const zigzags = (n) => {
    let last = 0;
    return column(new Float64Array(n), (d) => last += zigzag(d));
  };
  const textLists = (n) => {
    const lengths = ints(n);
    return Array.from(lengths, (length) => length ? Array.from(ints(length), (i) => texts[i]) : NONE);
  };

  const forest = () => {
    const count = number(), parent = columns.parents(count), frame = behind(count);
    const end = new Int32Array(count + 1); // the first node that is not below it
    for (let node = count; node >= 0; node--) {
      end[node] = Math.max(end[node], node + 1);
      if (node > 0) {
        end[parent[node]] = Math.max(end[parent[node]], end[node]);
      }
    }
    return { count, parent, frame, end };
  };
  const functions = forest();
  Object.assign(functions, { targets: behind(functions.count), threads: behind(functions.count, Float64Array), ends: behind(functions.count, Float64Array) });
  const lines = forest();
  lines.of = new Int32Array(lines.count + 1);
  lines.of.set(zigzags(lines.count), 1); // nodes of functions
  const n = number();
  const frames = { count: n, name: ints(n), short: ints(n), module: ints(n), runtime: ints(n), file: ints(n), line: floats(n), column: floats(n), flags: ints(n) };

  const count = number();
  const targets = { count, path: behind(count), inClass: behind(count), variant: behind(count), pid: behind(count, Float64Array), threads: behind(count, Float64Array), times: behind(count, Float64Array) };
  const lengths = behind(count), first = new Int32Array(count + 2);
  lengths.forEach((length, i) => { first[i + 1] = first[i] + length; });
  targets.moments = zigzags(first[count + 1]); // microseconds since 1970
  targets.firstMoment = first;
  targets.problems = [NONE, ...textLists(count)];
  const labels = Array.from({ length: number() }, () => ({ name: texts[number()], value: behind(count) }));

  const size = number();
  const sizes = floats(size), variantCounts = ints(size), unread = ints(size), signature = ints(size), facts = textLists(size), builds = textLists(size);
  const shorts = labels.map(() => ints(size));
  const parts = ints(size), parting = Array.from(parts).flatMap((is, i) => is ? [{ i }] : []);
  const member = (name, list) => parting.forEach((p, i) => { p[name] = list[i]; });
  ['role', 'node', 'last', 'here', 'missing', 'more', 'count'].forEach((name) => member(name, ints(parting.length)));
  parting.forEach((p) => {
    p.there = Array.from({ length: p.count }, () => ({ node: number(), targets: number(), threads: number() }));
  });
  const threadLists = (n) => {
    const counts = ints(n), more = floats(n), from = new Int32Array(n + 1);
    counts.forEach((length, i) => { from[i + 1] = from[i] + length; });
    const all = from[n];
    return { from, more, role: ints(all), node: ints(all), cut: ints(all), flags: ints(all), threads: floats(all), least: floats(all), most: floats(all), incomplete: floats(all), ends: ints(all) };
  };
  const threads = threadLists(size);
  let variant = 0;
  const classes = Array.from({ length: size }, (_, i) => ({
    i, size: sizes[i], unread: texts[unread[i]], signature: texts[signature[i]], facts: facts[i], builds: builds[i], variant, variants: (variant += variantCounts[i], variantCounts[i]),
    labels: labels.map((label, k) => texts[shorts[k][i]]), parting: null,
  }));
  parting.forEach((p) => { classes[p.i].parting = p; });
  dropUsual(classes, threads);
  parting.forEach((p) => { p.role = texts[p.role]; });
  const inVariant = number(), variantSizes = floats(inVariant), stacks = threadLists(inVariant);
  const idCounts = ints(stacks.role.length), firstID = new Int32Array(idCounts.length + 1);
  idCounts.forEach((length, i) => { firstID[i + 1] = firstID[i] + length; });
  Object.assign(stacks, { firstID, idTarget: zigzags(firstID[idCounts.length]), id: floats(firstID[idCounts.length]) });
  for (let i = 1; i <= count; i++) {
    targets.variant[i] += classes[targets.inClass[i]].variant;
  }

  const ranges = () => {
    let last = 0;
    return Array.from({ length: number() }, () => {
      const from = last + zigzag(number());
      last = from + number();
      return [from, last];
    });
  };
  const modules = Array.from(ints(number()), (name) => ({ name: texts[name] }));
  modules.forEach((m) => {
    const length = number();
    m.more = number();
    m.builds = Array.from({ length }, () => ({ id: texts[number()], count: number(), targets: ranges() }));
  });
  const groups = ints(number()), operations = Array.from(groups, (group) => ({ group: texts[group] }));
  operations.forEach((o) => { o.sequence = zigzag(number()); });
  ['operation', 'ranks', 'entered', 'completed', 'missing', 'unrecorded'].forEach((name) => {
    ints(operations.length).forEach((text, i) => { operations[i][name] = texts[text]; });
  });
  ['different', 'frames'].forEach((name) => textLists(operations.length).forEach((list, i) => { operations[i][name] = list; }));
  return { texts, byThread, functions, lines, frames, targets, labels, classes, threads, variantSizes, stacks, modules, operations };
};
