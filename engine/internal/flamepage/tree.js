// SPDX-License-Identifier: Apache-2.0

// Trees of calls. A tree has columns by call: its caller, its key (twice its function, and 1
// more for a guess), and its first callee and the next one of its caller's. Call 0 is the whole.

const THREAD = 0, GAP = 6; // kinds of functions

const withLinks = (tree) => {
  const count = tree.caller.length;
  tree.first = new Int32Array(count);
  tree.next = new Int32Array(count);
  for (let call = count - 1; call > 0; call--) {
    tree.next[call] = tree.first[tree.caller[call]];
    tree.first[tree.caller[call]] = call;
  }
  return tree;
};

// childFinder numbers the calls of a new tree: one for each key below a caller.
const childFinder = (most) => {
  const bits = Math.ceil(Math.log2(2 * most + 2));
  const slots = new Int32Array(1 << bits), mask = slots.length - 1;
  const caller = new Int32Array(most), key = new Int32Array(most);
  let count = 1;
  const find = (above, k) => {
    let at = (Math.imul(above, 0x9E3779B1) ^ Math.imul(k, 0x85EBCA6B)) >>> (32 - bits);
    for (; slots[at] > 0; at = at + 1 & mask) {
      if (caller[slots[at]] === above && key[slots[at]] === k) {
        return slots[at];
      }
    }
    caller[count] = above;
    key[count] = k;
    slots[at] = count;
    return count++;
  };
  const done = () => ({ caller: caller.slice(0, count), key: key.slice(0, count) });
  key[0] = -1;
  return { find, done };
};

// changed is a tree in which threads of all names are one (merge), and a call of a function
// that is on the stack already is the outer one (fold). Its column of is the new call of each old one.
const changed = (tree, kindOf, { merge, fold }) => {
  const count = tree.caller.length, finder = childFinder(count);
  const of = new Int32Array(count), level = new Int32Array(count);
  const open = new Int32Array(2 * kindOf.length); // by key, the new call on the path
  const keys = [], were = []; // of the path, by level, and what was open before
  const recursive = new Uint8Array(count);
  let depth = 0;
  for (let call = 1; call < count; call++) {
    const above = tree.caller[call], key = tree.key[call];
    level[call] = level[above] + 1;
    for (; depth >= level[call]; depth--) {
      open[keys[depth]] = were[depth];
    }
    keys[++depth] = key;
    were[depth] = open[key];
    if (merge && kindOf[key >> 1] === THREAD) {
      of[call] = of[above];
    } else if (fold && open[key] > 0) {
      of[call] = open[key];
      recursive[open[key]] = 1;
    } else {
      of[call] = open[key] = finder.find(of[above], key);
    }
  }
  return Object.assign(withLinks(finder.done()), { of, recursive });
};

// addUp adds columns of weights to a tree: what happened in each call itself, and with what it calls.
const addUp = (tree, calls, weights, isIn) => {
  const count = tree.caller.length, self = new Float64Array(count), of = tree.of;
  for (let i = 0; i < calls.length; i++) {
    if (isIn[i]) {
      self[of ? of[calls[i]] : calls[i]] += weights[i];
    }
  }
  const total = self.slice();
  for (let call = count - 1; call > 0; call--) {
    total[tree.caller[call]] += total[call];
  }
  return { self, total };
};

// within adds up the totals of calls that are hits, each weight once.
const sumOfHits = (tree, hits) => {
  const isIn = new Uint8Array(tree.caller.length);
  let total = 0, base = 0, calls = 0;
  for (let call = 1; call < isIn.length; call++) {
    const isHit = hits[tree.key[call]] && tree.total[call] > 0, above = isIn[tree.caller[call]];
    isIn[call] = isHit || above ? 1 : 0;
    if (isHit) {
      calls++;
      total += above ? 0 : tree.total[call];
      base += above ? 0 : tree.baseTotal[call];
    }
  }
  return { total, base, calls, isIn };
};

// A node is a box of a graph: calls of one key, in places that the graph puts together. It has
// the calls (at) with the weights that count for it there.
const newNode = (view, above, key) => ({
  view, above, key, level: above ? above.level + 1 : 0, total: 0, base: 0, at: [], weights: [], bases: [], below: null,
});

const addTo = (node, call, weight, base) => {
  node.total += weight;
  node.base += base;
  const last = node.at.length - 1;
  if (node.at[last] === call) {
    node.weights[last] += weight;
    node.bases[last] += base;
    return;
  }
  node.at.push(call);
  node.weights.push(weight);
  node.bases.push(base);
};

// below are the nodes next to a node, the heaviest first. They are made when they are looked at.
// A view in order of time has no nodes of less than least, of which there may be very many.
const below = (node, least = 0) => {
  if (node.view.runs) {
    if (node.below === null || least < node.least) {
      node.below = node.view.runs(node, least);
      node.least = least;
    }
  } else if (node.below === null) {
    const groups = new Map();
    node.view.step(node, (key, call, weight, base) => {
      let group = groups.get(key);
      if (group === undefined) {
        groups.set(key, group = newNode(node.view, node, key));
      }
      addTo(group, call, weight, base);
    });
    node.below = Array.from(groups.values()).sort((a, b) => node.view.widthOf(b) - node.view.widthOf(a) || a.key - b.key);
  }
  return node.below;
};

// toCallees goes from calls to what they call.
const toCallees = (tree) => (node, add) => {
  for (const above of node.at) {
    for (let call = tree.first[above]; call > 0; call = tree.next[call]) {
      if (tree.total[call] > 0 || tree.baseTotal[call] > 0) {
        add(tree.key[call], call, tree.total[call], tree.baseTotal[call]);
      }
    }
  }
};

// toCallers goes from calls to their callers.
const toCallers = (tree) => (node, add) => {
  node.at.forEach((call, i) => {
    const caller = tree.caller[call];
    if (caller > 0) {
      add(tree.key[caller], caller, node.weights[i], node.bases[i]);
    }
  });
};

const wholeNode = (tree, view) => {
  const node = newNode(view, null, -1);
  addTo(node, 0, tree.total[0], tree.baseTotal[0]);
  return node;
};

const topDown = (tree, widthOf) => wholeNode(tree, { step: toCallees(tree), widthOf });

const bottomUp = (tree, widthOf) => {
  const climb = toCallers(tree);
  const step = (node, add) => {
    if (node.above) {
      climb(node, add);
      return;
    }
    for (let call = 1; call < tree.key.length; call++) {
      if (tree.self[call] > 0 || tree.baseSelf[call] > 0) {
        add(tree.key[call], call, tree.self[call], tree.baseSelf[call]);
      }
    }
  };
  return wholeNode(tree, { step, widthOf, isInverted: true });
};

// eachOutermost goes over the calls of a tree from the whole on. It tells of each whether
// a call of its function is above it.
const eachOutermost = (tree, functions, visit) => {
  const open = new Int32Array(functions), path = [];
  let call = tree.first[0];
  while (call > 0) {
    const f = tree.key[call] >> 1;
    visit(call, f, open[f] === 0);
    if (tree.first[call] > 0) {
      open[f]++;
      path.push(call);
      call = tree.first[call];
      continue;
    }
    while (call > 0 && tree.next[call] === 0) {
      call = path.pop() || 0;
      open[call > 0 ? tree.key[call] >> 1 : 0] -= call > 0 ? 1 : 0;
    }
    call = call > 0 ? tree.next[call] : 0;
  }
};

// around are two nodes for all calls of a function: its callers, and what it calls.
const around = (tree, functions, f, widthOf) => {
  const callers = newNode({ step: toCallers(tree), widthOf, isInverted: true }, null, 2 * f);
  const callees = newNode({ step: toCallees(tree), widthOf }, null, 2 * f);
  eachOutermost(tree, functions, (call, of, isOuter) => {
    if (of === f && isOuter) {
      addTo(callers, call, tree.total[call], tree.baseTotal[call]);
      addTo(callees, call, tree.total[call], tree.baseTotal[call]);
    }
  });
  return { callers, callees };
};

// sums are the weights of functions: in themselves, and with what they call.
const sums = (tree, functions) => {
  const column = () => new Float64Array(functions);
  const of = { self: column(), total: column(), baseSelf: column(), baseTotal: column(), guessed: column() };
  eachOutermost(tree, functions, (call, f, isOuter) => {
    of.self[f] += tree.self[call];
    of.baseSelf[f] += tree.baseSelf[call];
    if (isOuter) {
      of.total[f] += tree.total[call];
      of.baseTotal[f] += tree.baseTotal[call];
      of.guessed[f] += tree.key[call] & 1 ? tree.total[call] : 0;
    }
  });
  return of;
};

const levelsOf = (tree) => {
  const levels = new Int32Array(tree.caller.length);
  for (let call = 1; call < levels.length; call++) {
    levels[call] = levels[tree.caller[call]] + 1;
  }
  return levels;
};

// inOrder has the samples of each thread side by side, by time: a node is a run of them with one
// call, from first on, and offset is the weight before it in the node above. Its calls (at) are the
// innermost ones.
const inOrder = (tree, samples, widthOf) => {
  const levels = levelsOf(tree);
  const callAt = (leaf, level) => {
    let call = leaf;
    while (levels[call] > level) {
      call = tree.caller[call];
    }
    return levels[call] === level ? call : -1;
  };
  const runs = (node, least) => {
    const list = [], { at, weights, threads } = node;
    let first = 0, total = 0, offset = 0, key = -1;
    const end = (to) => {
      if (key >= 0 && total >= least) {
        list.push(Object.assign(newNode(node.view, node, key), {
          at: at.subarray(first, to), weights: weights.subarray(first, to), threads: threads.subarray(first, to), thread: threads[first], first, total, offset,
        }));
      }
      offset += total;
      first = to;
      total = 0;
    };
    for (let i = 0; i < at.length; i++) {
      const call = callAt(at[i], node.level + 1), k = call < 0 ? -1 : tree.key[call]; // -1: in the node's function itself
      if (k !== key || threads[i] !== threads[first]) {
        end(i);
        key = k;
      }
      total += weights[i];
    }
    end(at.length);
    return list;
  };
  return Object.assign(newNode({ runs, widthOf, isInOrder: true }, null, -1), samples, { total: tree.total[0] });
};

// pathOf is the way from the first node to a node, by keys, or by samples where several nodes
// beside one another have one key. nodeAt is the node at the end of a way, as far as it goes.
const stepTo = (node) => node.view.isInOrder ? node.first : node.key;
const pathOf = (node) => {
  const path = [];
  for (; node.above; node = node.above) {
    path.unshift(stepTo(node));
  }
  return path;
};
const nodeAt = (root, path) => {
  let node = root;
  for (const step of path) {
    const next = below(node).find((n) => stepTo(n) === step);
    if (next === undefined) {
      break;
    }
    node = next;
  }
  return node;
};
