// SPDX-License-Identifier: Apache-2.0
'use strict';
(() => {
  const one = (selector) => document.querySelector(selector);
  const every = (selector) => Array.from(document.querySelectorAll(selector));
  const data = JSON.parse(one('#data').textContent);
  const functions = data.functions;
  const graph = one('#graph'), said = one('#said'), find = one('#find'), found = one('#found'), all = one('#all');
  const rowHeight = 20, leastWidth = 1; // pixels

  // Kinds, in the order of their numbers.
  const kinds = [
    { title: 'thread', from: 265, to: 285 },
    { title: 'CPU', from: 24, to: 52 },
    { title: 'kernel', from: 325, to: 350 },
    { title: 'GPU', from: 165, to: 205 },
  ];

  // share is a number from 0 to 1 that a name always has.
  const share = (name) => {
    let hash = 2166136261; // FNV-1a
    for (let i = 0; i < name.length; i++) {
      hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
    }
    return (hash >>> 0) / 4294967296;
  };
  const hue = (f) => kinds[f.k].from + share(f.n) * (kinds[f.k].to - kinds[f.k].from);

  // A tree of an event: calls are numbers, and all is what stands for the whole event.
  const treeOf = (event) => {
    const count = event.totals.length;
    const children = Array.from({ length: count + 1 }, () => []); // those of the whole event are the last
    event.callers.forEach((caller, call) => children[caller < 0 ? count : caller].push(call));
    children.forEach((list) => list.sort((a, b) => event.totals[b] - event.totals[a] || (functions[event.functions[a]].n < functions[event.functions[b]].n ? -1 : 1)));
    return {
      whole: count,
      children,
      callerOf: (call) => event.callers[call] < 0 ? count : event.callers[call],
      totalOf: (call) => call === count ? event.total : event.totals[call],
      of: (call) => functions[event.functions[call]],
      event,
    };
  };

  const scales = [[1e9, ' s'], [1e6, ' ms'], [1e3, ' µs']];
  const amount = (n) => {
    if (tree.event.unit !== 'nanoseconds') {
      return n.toLocaleString('en');
    }
    const scale = scales.find(([divide]) => n >= divide);
    return scale ? (n / scale[0]).toFixed(2) + scale[1] : `${n} ns`;
  };
  const percent = (n) => (tree.event.total > 0 ? 100 * n / tree.event.total : 0).toFixed(1) + '%';

  let tree = null, zoomed = 0, focused = -1, words = [], boxes = new Map();
  const isHit = (f) => words.length > 0 && words.every((word) => `${f.n} ${f.s || ''}`.toLowerCase().includes(word));

  const about = (call) => {
    if (call === tree.whole) {
      return `all, ${amount(tree.event.total)}`;
    }
    const f = tree.of(call), total = tree.totalOf(call);
    const parts = [`${f.n}: ${percent(total)}, ${amount(total)}`];
    if (f.k !== 1) {
      parts.push(kinds[f.k].title);
    }
    if (f.p) {
      parts.push(f.p);
    }
    if (f.m) {
      parts.push(`in ${f.m}`);
    }
    return parts.join(', ');
  };

  // box makes the box of a call. Its text is text: names are whatever a recording has.
  const box = (call, level, left, width, pixels) => {
    const e = document.createElement('div');
    const isWhole = call === tree.whole;
    e.setAttribute('role', 'treeitem');
    e.setAttribute('aria-level', String(level + 1));
    e.setAttribute('aria-label', about(call));
    e.tabIndex = call === focused ? 0 : -1;
    e.style.left = `${left * 100}%`;
    e.style.width = `${width * 100}%`;
    e.style.top = `${level * rowHeight}px`;
    e.style.setProperty('--hue', isWhole ? '220' : String(hue(tree.of(call))));
    if (pixels < 24) {
      e.className = 'thin';
    } else {
      e.textContent = isWhole ? 'all' : tree.of(call).s || tree.of(call).n;
    }
    if (!isWhole && isHit(tree.of(call))) {
      e.classList.add('hit');
    }
    e.dataset.call = String(call);
    graph.append(e);
    boxes.set(call, e);
    return e;
  };

  const draw = () => {
    const hadFocus = graph.contains(document.activeElement);
    graph.replaceChildren();
    boxes = new Map();
    const width = graph.clientWidth || 1000;
    const around = [];
    for (let call = zoomed; call !== tree.whole;) {
      call = tree.callerOf(call);
      around.unshift(call);
    }
    around.forEach((call, level) => box(call, level, 0, 1, width).classList.add('around'));
    if (focused < 0 || !isBelow(focused, zoomed) && !around.includes(focused)) {
      focused = zoomed;
    }
    let deepest = around.length;
    const open = [[zoomed, around.length, 0, 1]];
    while (open.length > 0) {
      const [call, level, left, part] = open.pop();
      box(call, level, left, part, part * width);
      deepest = Math.max(deepest, level);
      let at = left;
      for (const child of tree.children[call]) {
        const size = tree.totalOf(call) > 0 ? part * tree.totalOf(child) / tree.totalOf(call) : 0;
        if (size * width < leastWidth) {
          break; // those that follow are no wider
        }
        open.push([child, level + 1, at, size]);
        at += size;
      }
    }
    graph.style.height = `${(deepest + 1) * rowHeight}px`;
    graph.classList.toggle('searched', words.length > 0);
    all.disabled = zoomed === tree.whole;
    if (!boxes.has(focused)) {
      focused = zoomed;
      boxes.get(focused).tabIndex = 0;
    }
    if (hadFocus) {
      boxes.get(focused).focus({ preventScroll: true });
    }
  };

  const isBelow = (call, other) => {
    while (call !== other && call !== tree.whole) {
      call = tree.callerOf(call);
    }
    return call === other;
  };

  const focusOn = (call) => {
    if (call === undefined || !boxes.has(call)) {
      return;
    }
    boxes.get(focused).tabIndex = -1;
    focused = call;
    const e = boxes.get(call);
    e.tabIndex = 0;
    e.focus({ preventScroll: true });
    e.scrollIntoView({ block: 'nearest' });
    said.textContent = about(call);
  };
  const zoomTo = (call) => {
    zoomed = focused = call;
    draw();
    said.textContent = about(call);
  };
  const beside = (by) => {
    if (focused === tree.whole) {
      return;
    }
    const list = tree.children[tree.callerOf(focused)];
    focusOn(list[list.indexOf(focused) + by]);
  };

  const callOf = (target) => {
    const e = target.closest('#graph div');
    return e ? Number(e.dataset.call) : -1;
  };
  graph.addEventListener('click', (event) => {
    const call = callOf(event.target);
    if (call >= 0) {
      zoomTo(call);
      focusOn(call);
    }
  });
  graph.addEventListener('mouseover', (event) => {
    const call = callOf(event.target);
    if (call >= 0) {
      said.textContent = about(call);
    }
  });

  // Search: what has every word is marked, in the graph and in the table. The weight of
  // calls within calls that have them is counted once.
  const search = () => {
    words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    draw();
    every('.event:not([hidden]) tr').forEach((row) => {
      const name = row.querySelector('.n');
      row.classList.toggle('miss', words.length > 0 && name !== null && !words.every((word) => `${name.textContent} ${name.title}`.toLowerCase().includes(word)));
    });
    if (words.length === 0) {
      found.textContent = '';
      return;
    }
    let total = 0, calls = 0;
    const isIn = [];
    tree.event.callers.forEach((caller, call) => { // a caller comes before what it calls
      const hit = isHit(tree.of(call)), within = caller >= 0 && isIn[caller];
      isIn[call] = hit || within;
      if (hit) {
        calls++;
        total += within ? 0 : tree.totalOf(call);
      }
    });
    found.textContent = `${percent(total)} in ${calls} calls`;
  };
  let later = 0;
  find.addEventListener('input', () => {
    clearTimeout(later);
    later = setTimeout(search, 100);
  });

  const help = one('#help'), keysButton = one('#keys');
  const toggleHelp = () => {
    help.hidden = !help.hidden;
    keysButton.setAttribute('aria-expanded', String(!help.hidden));
  };
  keysButton.addEventListener('click', toggleHelp);
  const endSearch = () => {
    find.value = '';
    search();
  };
  const keysOfGraph = {
    ArrowUp: () => focused !== tree.whole && focusOn(tree.callerOf(focused)),
    ArrowDown: () => focusOn(tree.children[focused][0]),
    ArrowLeft: () => beside(-1),
    ArrowRight: () => beside(1),
    Enter: () => zoomTo(focused),
    ' ': () => zoomTo(focused),
  };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.target === find) {
      if (event.key === 'Escape') {
        endSearch();
        find.blur();
      } else if (event.key === 'Enter') {
        clearTimeout(later);
        search();
        const hit = one('#graph .hit');
        focusOn(hit ? Number(hit.dataset.call) : zoomed);
        event.preventDefault();
      }
      return;
    }
    if (graph.contains(event.target) && keysOfGraph[event.key]) {
      keysOfGraph[event.key]();
      event.preventDefault();
    } else if (event.key === '/') {
      find.focus();
      event.preventDefault();
    } else if (event.key === '?') {
      toggleHelp();
    } else if (event.key === 'Escape' && words.length > 0) {
      endSearch();
    } else if (event.key === 'Escape' && zoomed !== tree.whole) {
      zoomTo(tree.callerOf(zoomed));
    }
  });
  all.addEventListener('click', () => zoomTo(tree.whole));

  const show = (number) => {
    tree = treeOf(data.events[number]);
    zoomed = focused = tree.whole;
    every('.event').forEach((section) => { section.hidden = section.dataset.event !== String(number); });
    const left = tree.event.left_out;
    one('#left').textContent = left ? `${left} calls of less than ${amount(tree.event.least)} are left out.` : '';
    one('#legend').replaceChildren(...kinds.filter((kind, k) => tree.event.functions.some((f) => functions[f].k === k)).map((kind) => {
      const entry = document.createElement('span');
      entry.style.setProperty('--hue', String((kind.from + kind.to) / 2));
      entry.textContent = kind.title;
      return entry;
    }));
    search();
    said.textContent = about(tree.whole);
  };
  const events = one('#event');
  if (events) {
    events.addEventListener('change', () => show(Number(events.value)));
  }

  one('nav').hidden = false;
  if (data.events) {
    one('#flame').hidden = false;
    show(0);
    let drawn = graph.clientWidth;
    new ResizeObserver(() => {
      if (graph.clientWidth !== drawn) {
        drawn = graph.clientWidth;
        draw();
      }
    }).observe(graph);
  }
})();
