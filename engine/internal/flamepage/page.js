// SPDX-License-Identifier: Apache-2.0

// What the page shows and how it is driven. state is all that a link to the page keeps.

const views = ['flame', 'bottomup', 'order', 'sandwich', 'functions'];

const run = (data) => {
  const count = data.names.length;
  const state = { event: 0, view: 'flame', from: null, to: null, off: new Set(), find: '', regexp: false, merge: false, fold: false, f: -1, mark: -1, by: 'total' };
  let event = null, tree = null, isIn = null, words = null, hits = new Uint8Array(2 * count), told = null, table = null, sumsOfTree = null;

  const colors = makeColors(data);
  const colorOf = (node) => event.base ? colors.ofChange(node) : colors.ofKind(node.key);

  // Words about boxes.
  const amount = (n) => amountOf(n, event.unit);
  const share = (n) => percentOf(n, tree.total[0]);
  const signed = (text, n) => n > 0 ? `+${text}` : text;
  const changeOf = (total, base) => {
    const points = 100 * (total / (tree.total[0] || 1) - base / (tree.baseTotal[0] || 1));
    return signed(`${points.toFixed(1)}%`, points);
  };
  const samplesText = (n) => `${n.toLocaleString('en')} ${n === 1 ? 'sample' : 'samples'}`;
  const wholeText = () => {
    const all = event.whole, total = tree.total[0];
    const isAll = Math.abs(total - all) <= all * 1e-12;
    const part = isAll ? '100%' : `${percentOf(total, all)} of ${amount(all)}`;
    const counted = isAll ? event.count : event.count === event.samples ? isIn.reduce((a, b) => a + b, 0) : 0;
    return `all: ${amount(total)}, ${part}${counted > 0 ? `, ${samplesText(counted)}` : ''}${event.base ? `; before: ${amount(tree.baseTotal[0])}` : ''}`;
  };
  const shown = (f) => data.shorts[f] || data.names[f];
  const selfOf = (node) => node.above ? node.at.reduce((sum, call) => sum + tree.self[call], 0) : functionSums().self[node.key >> 1];
  const aboutFunction = (f) => [
    data.kinds[f] > 1 && data.kinds[f] !== GAP ? kinds[data.kinds[f]].title : '',
    data.places[f], data.modules[f] && `in ${data.modules[f]}`,
  ].filter(Boolean);
  // tidOf tells threads of one name apart.
  const tidOf = (node) => {
    const isThread = node.view.isInOrder && data.kinds[node.key >> 1] === THREAD;
    return isThread && data.threads[node.thread].TID >= 0 ? ` ${data.threads[node.thread].TID}` : '';
  };
  const about = (node) => {
    if (node.key < 0) {
      return tree.whole;
    }
    const f = node.key >> 1;
    const parts = [`${data.names[f]}${tidOf(node)}${node.key & 1 ? ' (a guess)' : ''}: ${share(node.total)}, ${amount(node.total)}`];
    if (event.base) {
      parts.push(`before ${percentOf(node.base, tree.baseTotal[0])} (${changeOf(node.total, node.base)})`);
    }
    if ((!node.view.isInverted && !node.view.isInOrder || !node.above) && data.kinds[f] !== THREAD) {
      parts.push(`itself ${amount(selfOf(node))}`);
    }
    if (tree.recursive && !node.view.isInOrder && tree.recursive[node.at[0]]) {
      parts.push('recursive');
    }
    return parts.concat(aboutFunction(f)).join(', ');
  };

  const tip = one('#tip');
  const pointed = (node, at) => {
    tip.hidden = !node;
    if (!node) {
      return;
    }
    tip.textContent = about(node);
    const place = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(Math.min(at.clientX + 12, innerWidth - place.width - 4), 0)}px`;
    tip.style.top = `${at.clientY + 22 + place.height > innerHeight ? at.clientY - place.height - 8 : at.clientY + 18}px`;
  };
  const tell = (node, of) => {
    told = node;
    one('#said').textContent = about(node);
    [one('#around'), one('#copy')].forEach((button) => { button.disabled = node.key < 0; });
    one('#around').disabled = node.key < 0 || data.kinds[node.key >> 1] === THREAD;
    one('#all').disabled = of.zoomed === of.root;
  };
  const hooks = {
    colors: colors.palette,
    colorOf,
    isHit: (node) => node.key >= 0 && hits[node.key] === 1,
    isSearched: () => words !== null || state.mark >= 0,
    isGuess: (node) => node.key >= 0 && (node.key & 1) === 1,
    isGap: (node) => node.key >= 0 && data.kinds[node.key >> 1] === GAP,
    textOf: (node) => node.key < 0 ? tree.whole : shown(node.key >> 1) + tidOf(node),
    shareOf: (node) => event.base ? changeOf(node.total, node.base) : share(node.total),
    about,
    told: tell,
    zoomed: () => keep(),
    pointed,
  };
  const graph = makeGraph(one('#graph'), hooks, false), callers = makeGraph(one('#callers'), hooks, true);
  const graphs = [graph, callers];
  graphs.forEach((g) => {
    // What is drawn on the canvas, for who cannot see it.
    g.holder.drawn = () => g.drawn().map(({ node, level, x, w, rest }) => ({ level, x, w, text: rest ? `${rest} narrower` : hooks.textOf(node), isHit: !rest && hooks.isHit(node) }));
  });
  const timeline = makeTimeline(one('#time'), {
    colors: colors.palette,
    kindColors: colors.ofKinds,
    changed: (from, to) => {
      Object.assign(state, { from, to });
      later(refilter);
    },
    resized: () => later(showTime),
  });

  // later does something before the next picture, once however often it is wanted.
  const wanted = new Set();
  const later = (what) => {
    if (!wanted.has(what)) {
      wanted.add(what);
      requestAnimationFrame(() => {
        wanted.delete(what);
        what();
      });
    }
  };

  // What is shown: the tree by state.merge and state.fold, of samples by time and thread.
  const isOfThread = () => {
    const isOn = Uint8Array.from(data.threads, (thread, i) => state.off.has(i) ? 0 : 1), list = new Uint8Array(event.threads.length);
    for (let i = 0; i < list.length; i++) {
      list[i] = isOn[event.threads[i]];
    }
    return list;
  };
  const isOfTime = (i) => !event.times || state.from === null || event.times[i] >= state.from && event.times[i] <= state.to;
  const retree = () => {
    tree = state.merge || state.fold ? changed(data.tree, data.kinds, state) : data.tree;
    refilter();
  };
  const refilter = () => {
    isIn = isOfThread();
    for (let i = 0; i < isIn.length && state.from !== null; i++) {
      isIn[i] = isIn[i] && isOfTime(i) ? 1 : 0;
    }
    Object.assign(tree, addUp(tree, event.calls, event.weights, isIn));
    const base = event.bases ? addUp(tree, event.calls, event.bases, isIn) : null;
    const none = base || new Float64Array(tree.caller.length);
    Object.assign(tree, { baseSelf: base ? base.self : none, baseTotal: base ? base.total : none });
    tree.whole = wholeText();
    sumsOfTree = null;
    showView();
    showThreadList();
    search();
  };
  const functionSums = () => sumsOfTree = sumsOfTree || sums(tree, count);
  const widthOf = (node) => state.by === 'base' ? node.base : node.total;

  const heaviest = () => {
    const { self } = functionSums();
    return self.reduce((best, n, f) => data.kinds[f] !== THREAD && n > (best < 0 ? 0 : self[best]) ? f : best, -1);
  };
  // byThread are the samples that are in, of one thread after the other, the heaviest first.
  const byThread = () => {
    const lists = data.threads.map(() => []), weights = new Float64Array(data.threads.length);
    for (let i = 0; i < isIn.length; i++) {
      if (isIn[i]) {
        lists[event.threads[i]].push(i);
        weights[event.threads[i]] += event.weights[i];
      }
    }
    const order = lists.map((list, i) => i).sort((a, b) => weights[b] - weights[a]).flatMap((i) => lists[i]);
    return {
      at: Int32Array.from(order, (i) => tree.of ? tree.of[event.calls[i]] : event.calls[i]),
      weights: Float64Array.from(order, (i) => event.weights[i]), threads: Int32Array.from(order, (i) => event.threads[i]),
    };
  };
  const roots = {
    flame: () => topDown(tree, widthOf), bottomup: () => bottomUp(tree, widthOf), order: () => inOrder(tree, byThread(), widthOf),
  };
  const showSandwich = (path) => {
    const { callers: above, callees } = around(tree, count, state.f, widthOf);
    callers.show(above, path);
    graph.show(callees, path);
    const { self, total } = functionSums();
    one('#chosen').replaceChildren(
      element('span', '▴ callers', 'f'), element('span', shown(state.f), 'n'),
      element('span', `${share(total[state.f])}, itself ${share(self[state.f])}`), element('span', '▾ callees', 'f'),
    );
    one('#chosen').title = data.names[state.f];
  };
  const showView = (path) => {
    state.view = state.view === 'order' && !event.times ? 'flame' : state.view;
    const is = state.view;
    one('[data-view=order]').hidden = !event.times;
    if (is === 'sandwich' && state.f < 0) {
      state.f = told && told.key >= 0 && data.kinds[told.key >> 1] !== THREAD ? told.key >> 1 : heaviest();
    }
    one('#view').className = is;
    one('#table').hidden = Boolean(roots[is]);
    one('#graphs').hidden = is === 'functions';
    one('#callers').hidden = one('#chosen').hidden = is !== 'sandwich';
    one('#graph').setAttribute('aria-label', { flame: 'Flame graph', bottomup: 'Bottom-up', order: 'In order of time', sandwich: 'Callees' }[is] || '');
    every('#tabs button').forEach((tab) => {
      tab.setAttribute('aria-selected', String(tab.dataset.view === is));
      tab.tabIndex = tab.dataset.view === is ? 0 : -1;
    });
    if (is === 'sandwich' && state.f >= 0) {
      showSandwich(path);
    } else if (roots[is]) {
      graph.show(roots[is](), path);
    }
    if (is === 'sandwich' || is === 'functions') {
      showTable();
    }
    if (graph.root && is !== 'functions') {
      tell(graph.focused, graph);
    } else {
      tellFunction(state.f);
    }
  };
  // tellFunction says what the table has about a function.
  const tellFunction = (f) => {
    const { self, total } = functionSums();
    told = f < 0 ? null : { key: 2 * f };
    one('#said').textContent = f < 0 ? tree.whole : [`${data.names[f]}: ${share(total[f])}, ${amount(total[f])}`, `itself ${amount(self[f])}`, ...aboutFunction(f)].join(', ');
    one('#around').disabled = one('#copy').disabled = f < 0;
  };
  const goTo = (view) => {
    if (state.view !== view) {
      state.view = view;
      showView([]);
      keep();
    }
  };
  const choose = (f, isSandwich) => {
    if (f < 0 || data.kinds[f] === THREAD) {
      return;
    }
    state.f = f;
    if (isSandwich || state.view === 'sandwich') {
      state.view = 'sandwich';
      showView([]);
    } else {
      tellFunction(f);
    }
    table.choose(f);
    keep();
  };

  // The table.
  const nameCell = (f) => {
    const cell = element('td'), { total, baseTotal, guessed } = functionSums();
    const swatch = element('span', '', 'swatch');
    swatch.style.background = colorOf({ key: 2 * f, total: total[f], base: baseTotal[f] });
    cell.append(swatch, element('span', shown(f), 'n'));
    cell.title = [data.names[f], ...aboutFunction(f)].join(', ');
    const add = (text, className) => text && cell.append(' ', element('span', text, className));
    add(data.kinds[f] > 1 && data.kinds[f] !== GAP ? kinds[data.kinds[f]].title : '', 'd');
    add(guessed[f] > 0 ? guessed[f] === total[f] ? 'a guess' : `a guess in ${percentOf(guessed[f], total[f])}` : '', 'w');
    add(data.places[f], 'p');
    add(data.modules[f] && `in ${data.modules[f]}`, 'f');
    return cell;
  };
  const makeColumns = () => {
    const of = (name) => (f) => functionSums()[name][f];
    const column = (title, name) => [
      { title, value: of(name), text: (f) => amount(of(name)(f)), isWide: true }, { title: `${title} %`, value: of(name), text: (f) => share(of(name)(f)), part: (f) => of(name)(f) / (tree.total[0] || 1) },
    ];
    const list = [...column('Self', 'self'), ...column('Total', 'total')];
    if (data.events.some((e) => e.base)) {
      // They are in the order of what changed most, to more or to less.
      const difference = (now, before) => (f) => Math.abs(of(now)(f) / (tree.total[0] || 1) - of(before)(f) / (tree.baseTotal[0] || 1));
      [['self', 'baseSelf', 'Self ±'], ['total', 'baseTotal', 'Total ±']].forEach(([now, before, title]) => {
        list.push({ title, value: difference(now, before), text: (f) => changeOf(of(now)(f), of(before)(f)) });
      });
    }
    return list;
  };
  const showTable = () => {
    const { total, baseTotal } = functionSums(), rows = [];
    for (let f = 0; f < count; f++) {
      const isFound = words === null && state.mark < 0 || hits[2 * f] || hits[2 * f + 1];
      if ((total[f] > 0 || baseTotal[f] > 0) && isFound && data.kinds[f] !== THREAD) {
        rows.push(f);
      }
    }
    table.chosen = state.f;
    table.show(rows);
  };

  // Search: what has every word, or the expression, is marked. Weights of calls within calls
  // that have them are counted once.
  const matcher = () => {
    const text = state.find.trim();
    one('#find').setAttribute('aria-invalid', 'false');
    if (text === '') {
      return null;
    }
    if (state.regexp) {
      try {
        const e = new RegExp(text, 'i');
        return (f) => e.test(data.names[f]) || e.test(data.shorts[f]);
      } catch (error) {
        one('#find').setAttribute('aria-invalid', 'true');
        return () => false;
      }
    }
    const list = text.toLowerCase().split(/\s+/);
    return (f) => {
      const name = `${data.names[f]} ${data.shorts[f]}`.toLowerCase();
      return list.every((word) => name.includes(word));
    };
  };
  const findHits = () => {
    hits.fill(0);
    for (let f = 0; f < count && hooks.isSearched(); f++) {
      const isKind = state.mark < 0 || state.mark === GUESS || data.kinds[f] === state.mark;
      if (isKind && (words === null || data.kinds[f] !== THREAD && words(f))) {
        hits[2 * f] = state.mark === GUESS ? 0 : 1;
        hits[2 * f + 1] = 1;
      }
    }
  };
  let marked = null;
  const search = () => {
    words = matcher();
    findHits();
    const found = one('#found');
    found.textContent = '';
    marked = null;
    if (hooks.isSearched()) {
      const sum = sumOfHits(tree, hits);
      const change = event.base ? ` (${changeOf(sum.total, sum.base)})` : '';
      marked = sum.isIn;
      found.textContent = one('#find').getAttribute('aria-invalid') === 'true' ? 'no regular expression' : `${share(sum.total)}${change}, ${amount(sum.total)} in ${sum.calls} ${sum.calls === 1 ? 'call' : 'calls'}`;
    }
    graphs.forEach((g) => g.draw());
    if (!one('#table').hidden) {
      showTable();
    }
    every('#legend button').forEach((button) => button.setAttribute('aria-pressed', String(Number(button.dataset.mark) === state.mark)));
    showTime();
    keep();
  };
  const nextHit = () => {
    const list = graph.drawn().filter((box) => !box.rest).map((box) => box.node).filter(hooks.isHit);
    graph.holder.focus({ preventScroll: true });
    graph.focusOn(list[(list.indexOf(graph.focused) + 1) % list.length] || graph.zoomed);
  };
  const showTime = () => {
    if (event.times && event.times.length > 1) {
      one('#timeline').hidden = false;
      timeline.from = state.from;
      timeline.to = state.to;
      const kindOfCall = (call) => call > 0 ? data.kinds[data.tree.key[call] >> 1] : THREAD;
      timeline.show(event, isOfThread(), kindOfCall, marked && ((call) => marked[tree.of ? tree.of[call] : call]));
    } else {
      one('#timeline').hidden = true;
    }
  };

  const showThreadList = () => {
    const list = one('#threadlist'), button = one('#threads');
    const rows = event.used, on = rows.filter((i) => !state.off.has(i)).length;
    button.hidden = data.threads.length < 2;
    button.textContent = on === rows.length ? `Threads: ${on}` : `Threads: ${on} of ${rows.length}`;
    if (!list.hidden) {
      const weights = data.threads.map(() => 0);
      event.weights.forEach((weight, i) => { weights[event.threads[i]] += isOfTime(i) ? weight : 0; });
      const off = { has: (i) => state.off.has(rows[i]), add: (i) => state.off.add(rows[i]), delete: (i) => state.off.delete(rows[i]) };
      const at = list.scrollTop;
      showThreads(list, rows.map((i) => data.threads[i]), rows.map((i) => weights[i]), off, refilter);
      list.scrollTop = at;
    }
  };

  // The legend: what is pressed is marked, as a search marks it.
  const legendEntry = (mark, title, style) => {
    const button = element('button', title, style);
    button.type = 'button';
    button.dataset.mark = String(mark);
    button.title = `mark ${title}`;
    button.addEventListener('click', () => {
      state.mark = state.mark === mark ? -1 : mark;
      search();
    });
    return button;
  };
  const showLegend = () => {
    const met = new Set(), entries = [], isUsed = new Uint8Array(2 * count), isCalled = new Uint8Array(data.tree.key.length);
    event.calls.forEach((call) => { isCalled[call] = 1; });
    for (let call = isCalled.length - 1; call > 0; call--) {
      if (isCalled[call]) {
        isCalled[data.tree.caller[call]] = isUsed[data.tree.key[call]] = 1;
      }
    }
    isUsed.forEach((is, key) => is && met.add(data.kinds[key >> 1]).add(key & 1 ? GUESS : data.kinds[key >> 1]));
    kinds.forEach((kind, i) => {
      if (met.has(i)) {
        const entry = legendEntry(i, kind.title, event.base ? 'plain' : i === GAP ? 'gap' : '');
        entry.style.setProperty('--hue', String((kind.from + kind.to) / 2));
        entries.push(entry);
      }
    });
    if (met.has(GUESS)) {
      entries.push(legendEntry(GUESS, 'guess', 'guess'));
    }
    if (event.base) {
      entries.push(element('span', `less than ${event.base}`, 'less'), element('span', 'more', 'more'));
    }
    one('#legend').replaceChildren(...entries);
  };

  // Links: the part of the address behind # has what differs from the beginning.
  const keep = () => {
    const to = new URLSearchParams(), put = (name, value, isThere) => isThere && to.set(name, value);
    put('view', state.view, state.view !== 'flame');
    put('event', state.event, state.event > 0);
    put('find', state.find, state.find !== '');
    put('regexp', '1', state.regexp);
    put('merge', '1', state.merge);
    put('fold', '1', state.fold);
    put('by', state.by, state.by !== 'total');
    put('mark', state.mark, state.mark >= 0);
    put('f', state.f, state.f >= 0 && state.view === 'sandwich');
    put('time', `${Math.round(state.from)}-${Math.round(state.to)}`, state.from !== null);
    put('off', Array.from(state.off).join('.'), state.off.size > 0);
    put('zoom', graph.root ? pathOf(graph.zoomed).map((key) => key.toString(36)).join('.') : '', graph.root && graph.zoomed !== graph.root);
    try {
      history.replaceState(null, '', `#${to}`);
    } catch (error) {
      // A page in a frame has no address of its own.
    }
  };
  const restore = () => {
    const from = new URLSearchParams(location.hash.slice(1)), number = (name, other) => /^\d+$/.test(from.get(name) || '') ? Number(from.get(name)) : other;
    const is = (list, value) => list.includes(value) ? value : list[0];
    const time = (from.get('time') || '').split('-').map(Number);
    Object.assign(state, {
      view: is(views, from.get('view')), by: is(['total', 'base'], from.get('by')),
      event: Math.min(number('event', 0), data.events.length - 1), f: Math.min(number('f', -1), count - 1), mark: Math.min(number('mark', -1), GUESS),
      find: from.get('find') || '', regexp: from.has('regexp'), merge: from.has('merge'), fold: from.has('fold'),
      from: time.length === 2 && time[0] <= time[1] ? time[0] : null, to: time.length === 2 && time[0] <= time[1] ? time[1] : null,
      off: new Set((from.get('off') || '').split('.').filter(Boolean).map(Number)),
    });
    const path = (from.get('zoom') || '').split('.').filter(Boolean).map((key) => parseInt(key, 36));
    one('#find').value = state.find;
    one('#widths').value = state.by;
    one('#regexp').setAttribute('aria-pressed', String(state.regexp));
    ['merge', 'fold'].forEach((name) => { one(`#${name}`).checked = state[name]; });
    if (one('#event')) {
      one('#event').value = String(state.event);
    }
    pickEvent();
    if (path.length > 0) {
      graph.show(graph.root, path);
      tell(graph.focused, graph);
      keep();
    }
  };

  const pickEvent = () => {
    event = data.events[state.event];
    event.whole = event.weights.reduce((a, b) => a + b, 0);
    const isUsed = new Uint8Array(data.threads.length);
    event.threads.forEach((i) => { isUsed[i] = 1; });
    event.used = Array.from(isUsed.keys()).filter((i) => isUsed[i] === 1);
    one('#widths').hidden = !event.base;
    showLegend();
    retree();
  };

  // What is pressed and typed.
  const press = (selector, action) => one(selector).addEventListener('click', action);
  const open = (button, panel, isOpen) => {
    panel.hidden = !isOpen;
    button.setAttribute('aria-expanded', String(isOpen));
  };
  const toggleHelp = () => open(one('#keys'), one('#help'), one('#help').hidden);
  const copyName = async () => {
    if (!told || told.key < 0) {
      return;
    }
    const text = data.names[told.key >> 1];
    try {
      await navigator.clipboard.writeText(text);
    } catch (error) {
      const field = element('textarea', text, 'unseen'), at = document.activeElement;
      document.body.append(field);
      field.select();
      document.execCommand('copy');
      field.remove();
      at.focus({ preventScroll: true });
    }
    one('#copy').textContent = 'Copied';
    setTimeout(() => { one('#copy').textContent = 'Copy name'; }, 1000);
  };
  const chooseTold = () => told && choose(told.key >> 1, true);
  const endSearch = () => {
    one('#find').value = state.find = '';
    state.mark = -1;
    search();
  };
  // zoomedOne is the graph that Esc goes out of: the one that has the focus, or else any.
  const zoomedOne = () => {
    const list = graphs.filter((g) => !g.holder.hidden && g.root && g.zoomed.above);
    return list.find((g) => g.holder === document.activeElement) || list[0];
  };
  const goBack = () => {
    if (!one('#help').hidden || !one('#threadlist').hidden) {
      open(one('#keys'), one('#help'), false);
      open(one('#threads'), one('#threadlist'), false);
    } else if (hooks.isSearched()) {
      endSearch();
    } else if (zoomedOne()) {
      zoomedOne().zoomTo(zoomedOne().zoomed.above);
    } else if (state.from !== null) {
      timeline.select(null, null);
    }
  };
  const keys = {
    '/': () => one('#find').focus(), '?': toggleHelp, Escape: goBack, Backspace: goBack, s: chooseTold, c: copyName,
  };
  document.addEventListener('keydown', (pressed) => {
    if (pressed.ctrlKey || pressed.metaKey || pressed.altKey || pressed.defaultPrevented || pressed.target.tagName === 'SELECT') {
      return;
    }
    if (pressed.target.id === 'find') {
      if (pressed.key === 'Escape') {
        endSearch();
        graph.holder.focus({ preventScroll: true });
      } else if (pressed.key === 'Enter') {
        typed();
        nextHit();
        pressed.preventDefault();
      }
    } else if (views[pressed.key - 1]) {
      goTo(views[pressed.key - 1]);
    } else if (keys[pressed.key]) {
      keys[pressed.key]();
      pressed.preventDefault();
    }
  });
  one('#tabs').addEventListener('keydown', (pressed) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[pressed.key];
    if (by) {
      const there = views.filter((view) => event.times || view !== 'order');
      const next = there[(there.indexOf(state.view) + by + there.length) % there.length];
      goTo(next);
      one(`#tabs [data-view=${next}]`).focus();
    }
  });
  let timer = 0;
  const typed = () => {
    clearTimeout(timer);
    if (state.find !== one('#find').value) {
      state.find = one('#find').value;
      search();
    }
  };
  one('#find').addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(typed, 100);
  });
  press('#regexp', () => {
    state.regexp = !state.regexp;
    one('#regexp').setAttribute('aria-pressed', String(state.regexp));
    search();
  });
  press('#keys', toggleHelp);
  press('#threads', () => {
    open(one('#threads'), one('#threadlist'), one('#threadlist').hidden);
    showThreadList();
  });
  press('#all', () => graphs.forEach((g) => g.root && g.zoomTo(g.root)));
  press('#around', chooseTold);
  press('#copy', copyName);
  every('#tabs button').forEach((tab) => tab.addEventListener('click', () => goTo(tab.dataset.view)));
  ['merge', 'fold'].forEach((name) => one(`#${name}`).addEventListener('change', () => {
    state[name] = one(`#${name}`).checked;
    retree();
  }));
  one('#widths').addEventListener('change', () => {
    state.by = one('#widths').value;
    showView();
    keep();
  });
  if (one('#event')) {
    one('#event').addEventListener('change', () => {
      Object.assign(state, { event: Number(one('#event').value), from: null, to: null });
      pickEvent();
    });
  }
  const restyle = () => {
    colors.read();
    graphs.forEach((g) => g.restyle());
    table.draw();
    timeline.draw();
  };
  new MutationObserver(restyle).observe(document.documentElement, { attributes: true, attributeFilter: ['class'] });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', restyle);
  addEventListener('hashchange', restore);

  document.documentElement.classList.add('app');
  one('nav').hidden = one('#app').hidden = false;
  colors.read();
  table = makeTable(one('#table'), makeColumns(), {
    name: nameCell, chosen: choose, compare: (a, b) => shown(a) < shown(b) ? -1 : shown(a) > shown(b) ? 1 : 0,
  });
  table.by = data.events[0].base ? 4 : 0;
  restore();
};

(async () => {
  const wait = one('#wait');
  wait.hidden = false;
  try {
    const data = readData(await packedColumns());
    if (data.events.length > 0) {
      run(data);
    } else {
      one('nav').hidden = false;
    }
    wait.hidden = true;
  } catch (error) {
    wait.textContent = `This browser cannot read the samples (${error}). The heaviest functions are below.`;
  }
  document.documentElement.dataset.ready = '1';
})();
