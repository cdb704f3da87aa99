// SPDX-License-Identifier: Apache-2.0

// What the page shows and how it is driven. state is all that a link to the page keeps.

const views = ['tree', 'report', 'operations', 'modules'].filter((view) => one(`[data-view=${view}]`));

const run = (data) => {
  const { classes, targets, labels, functions, texts } = data, words = makeWords(data), forest = makeForest(data), find = makeFinder(data);
  const state = { find: '', label: -1, value: '', class: -1, target: 0, view: 'tree' };
  // chosen narrows the list beside a class: the targets of a call, or of a build.
  let result = { isIn: null, isFound: null }, chosen = null, listed = [], isLit = pathOf(data, -1), shownOf = [];

  // The tree.
  const marksOf = (row) => {
    const { count, marks, all } = forest.tally, list = element('span', undefined, 'marks');
    if (count[row.last] === all) {
      return list;
    }
    for (let i = 0; i < Math.min(count[row.last], MOST_MARKS); i++) {
      list.append(badge(classes[marks[row.last * MOST_MARKS + i]], words.rest));
    }
    if (count[row.last] > MOST_MARKS) {
      list.append(element('span', `+${words.numberOf(count[row.last] - MOST_MARKS)}`, 'f'));
    }
    return list;
  };
  const someInRow = (row, is) => {
    for (let node = row.last; ; node = functions.parent[node]) {
      if (is[node]) {
        return true;
      }
      if (node === row.first) {
        return false;
      }
    }
  };
  const chipOf = (row) => {
    const parting = state.class >= 0 && classes[state.class].parting;
    if (parting && parting.here > 0 && forest.isIn(row, parting.here)) {
      return element('span', 'here', 'chip w');
    }
    if (parting && parting.last > 0 && row.last === parting.last) {
      return element('span', parting.here > 0 || parting.missing ? 'parts here' : 'ends here', 'chip w');
    }
    return parting && parting.there.some(({ node }) => node > 0 && forest.isIn(row, node)) ? element('span', 'others', 'chip') : '';
  };
  const treeRow = (i) => {
    const row = forest.rows[i], e = element('div', undefined, 'row'), { targets: count, whole } = forest.tally;
    const f = functions.frame[row.last], isOpen = row.below.length > 0 && forest.open.has(row.last);
    e.setAttribute('role', 'treeitem');
    e.setAttribute('aria-level', row.level);
    e.setAttribute('aria-posinset', row.place);
    e.setAttribute('aria-setsize', row.of);
    e.setAttribute('aria-label', nodeText(row));
    if (row.below.length > 0) {
      e.setAttribute('aria-expanded', String(isOpen));
    }
    e.style.setProperty('--level', String(row.level - 1));
    e.classList.toggle('lit', state.class >= 0 && isLit[row.last] === 2);
    e.classList.toggle('dim', state.class >= 0 && isLit[row.first] === 0);
    e.classList.toggle('hit', result.isFound !== null && someInRow(row, result.isFound));
    e.classList.toggle('guess', (data.frames.flags[f] & GUESS) > 0);
    const name = element('span', undefined, 'name');
    if (row.inside > 0) {
      const chain = element('span', row.inside > 1 ? `${words.nodeName(row.first)} › ${words.numberOf(row.inside - 1)} more ›` : `${words.nodeName(row.first)} ›`, 'chain');
      name.append(chain);
    }
    name.append(element('span', words.shortOf(f), 'n'));
    const kind = words.kindOf(f);
    if (kind || data.frames.module[f]) {
      name.append(element('span', [kind, texts[data.frames.module[f]]].filter(Boolean).join(', '), 'f'));
    }
    const bar = element('span', undefined, 'bar');
    bar.style.setProperty('--share', `${100 * count[row.last] / (whole || 1)}%`);
    e.append(element('span', row.below.length === 0 ? '' : isOpen ? '▾' : '▸', 'twist'), name, chipOf(row), marksOf(row), bar, element('span', words.numberOf(count[row.last]), 'v'));
    return e;
  };
  const nodeText = (row) => {
    const { targets: count, count: inClasses, whole } = forest.tally, node = row.last, f = functions.frame[node];
    const parts = [`${texts[data.frames.name[f]]}: ${words.numberOf(count[node])} of ${words.targetsText(whole)}`];
    if (!data.byThread && result.isIn === null) {
      parts.push(words.plural(functions.threads[node], 'thread') + (functions.ends[node] > 0 && row.below.length > 0 ? `, ${words.numberOf(functions.ends[node])} of them end here` : ''));
    }
    parts.push(words.plural(inClasses[node], 'class'), texts[data.frames.module[f]] && `in ${texts[data.frames.module[f]]}`, words.kindOf(f));
    if (row.inside > 0) {
      parts.push(`the end of ${words.numberOf(row.inside + 1)} calls in one line`);
    }
    return parts.filter(Boolean).join(', ');
  };
  const showTree = (node) => {
    forest.list();
    const i = node > 0 ? forest.rowAt(node) : -1;
    tree.show(forest.rows.length);
    if (i >= 0) {
      tree.goTo(i);
    } else if (forest.rows.length > 0) {
      one('#said').textContent = nodeText(forest.rows[tree.at]);
    }
  };
  const toggle = (i, isOpening) => {
    const row = forest.rows[i];
    if (isOpening) {
      forest.open.add(row.last);
    } else {
      forest.open.delete(row.last);
    }
    showTree(row.last);
  };
  const unfold = (i) => {
    const { first, last, inside } = forest.rows[i];
    for (let node = last; inside > 0; node = functions.parent[node]) {
      forest.unfolded.add(node);
      if (node === first) {
        break;
      }
      forest.open.add(functions.parent[node]);
    }
    showTree(first);
  };
  const out = (i) => {
    const row = forest.rows[i];
    if (forest.open.has(row.last) && row.below.length > 0) {
      toggle(i, false);
      return;
    }
    for (let k = i - 1; k >= 0; k--) {
      if (forest.rows[k].level < row.level) {
        tree.goTo(k);
        return;
      }
    }
  };
  const into = (i) => {
    if (forest.rows[i].below.length > 0) {
      forest.open.has(forest.rows[i].last) ? tree.goTo(i + 1) : toggle(i, true);
    }
  };
  const chooseNode = (i) => {
    const { last } = forest.rows[i], isOf = Uint8Array.from(classes, (c) => {
      for (let t = data.threads.from[c.i]; t < data.threads.from[c.i + 1]; t++) {
        if (data.threads.node[t] >= last && data.threads.node[t] < functions.end[last]) {
          return 1;
        }
      }
      return 0;
    });
    narrow(`in ${words.nodeName(last)}`, (target) => isOf[targets.inClass[target]] === 1);
  };
  const tree = makeList(one('#tree'), {
    row: treeRow,
    moved: (i) => { one('#said').textContent = nodeText(forest.rows[i]); },
    clicked: (i, at) => {
      if (at.matches('.chain')) {
        unfold(i);
      } else if (at.matches('.v, .bar')) {
        chooseNode(i);
      } else {
        toggle(i, !forest.open.has(forest.rows[i].last));
      }
    },
    keys: { ArrowRight: into, ArrowLeft: out, ' ': unfold, Enter: chooseNode },
  });

  // The list of targets.
  const listRow = (k) => {
    const i = listed[k], e = element('div', undefined, 'row'), c = classes[targets.inClass[i]];
    e.setAttribute('role', 'option');
    e.setAttribute('aria-selected', String(i === state.target));
    e.setAttribute('aria-posinset', k + 1);
    e.setAttribute('aria-setsize', listed.length);
    const labelled = words.ofTarget(i), path = texts[targets.path[i]];
    e.append(badge(c, words.rest), ' ', element('span', labelled || path, 'n'), ' ', element('span', labelled ? path : '', 'f'));
    e.title = [labelled, path].filter(Boolean).join('\n');
    return e;
  };
  const list = makeList(one('#list'), { row: listRow, clicked: (k) => openTarget(listed[k]), keys: { Enter: (k) => openTarget(listed[k]) } });
  const showList = () => {
    const isShown = (i) => (result.isIn === null || result.isIn[i] === 1) && (state.class < 0 || targets.inClass[i] === state.class) && (chosen === null || chosen.test(i));
    listed = [];
    for (let i = 1; i <= targets.count; i++) {
      if (isShown(i)) {
        listed.push(i);
      }
    }
    const where = [state.class >= 0 ? `of class ${state.class + 1}` : '', chosen ? chosen.name : ''].filter(Boolean).join(' ');
    one('#listtitle span').textContent = `${words.targetsText(listed.length)} ${where}`;
    one('#all').hidden = where === '';
    one('#list').scrollTop = 0;
    list.at = 0;
    list.show(listed.length);
  };
  const narrow = (name, test) => {
    chosen = { name, test };
    state.class = -1;
    showClasses();
    light();
    showList();
  };

  // Classes.
  const showClasses = () => {
    const shown = classes.filter(({ i }) => shownOf[i] > 0), holder = one('#classes');
    holder.replaceChildren();
    // The chosen class is among the first, wherever it stands.
    const at = shown.findIndex(({ i }) => i === state.class);
    inPieces(holder, shown.length, (k) => {
      const item = element('li'), button = card(data, words, shown[k], shownOf[shown[k].i]);
      button.setAttribute('aria-pressed', String(shown[k].i === state.class));
      item.append(button);
      return item;
    }, Math.max(MORE, at + 1));
    const unread = shown.filter((c) => c.unread).length, all = classes.filter((c) => !c.unread).length, read = shown.length - unread;
    one('#classestitle').textContent = `${read === all ? '' : `${words.numberOf(read)} of `}${words.plural(all, 'class')}${unread > 0 ? `, ${words.numberOf(unread)} not read` : ''}`;
  };
  const light = () => {
    isLit = pathOf(data, state.class);
    const c = classes[state.class];
    let node = 0;
    if (c && c.parting) {
      node = c.parting.here || c.parting.last;
      forest.reveal(node);
      forest.open.add(c.parting.last);
    }
    showTree(node || (forest.rows[tree.at] || {}).last);
  };
  const chooseClass = (i) => {
    state.class = i;
    chosen = null;
    every('#classes [data-c]').forEach((button) => button.setAttribute('aria-pressed', String(Number(button.dataset.c) === i)));
    if (state.view !== 'tree' && i >= 0) {
      show('tree');
    }
    light();
    showList();
    keep();
  };
  one('#classes').addEventListener('click', (clicked) => {
    const button = clicked.target.closest('[data-c]');
    if (button) {
      const i = Number(button.dataset.c);
      chooseClass(i === state.class ? -1 : i);
    }
  });
  one('#classes').addEventListener('keydown', (pressed) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[pressed.key], buttons = every('#classes button');
    const next = buttons[buttons.indexOf(document.activeElement) + by];
    if (by && next) {
      next.focus();
      pressed.preventDefault();
    }
  });

  // Views.
  const show = (view) => {
    state.view = view;
    one('#treeview').hidden = view !== 'tree';
    ['report', 'operations', 'modules'].forEach((name) => { one(`#${name}`).hidden = view !== name; });
    every('#tabs button').forEach((tab) => {
      tab.setAttribute('aria-selected', String(tab.dataset.view === view));
      tab.tabIndex = tab.dataset.view === view ? 0 : -1;
    });
    keep();
  };
  const openTarget = (i) => {
    state.target = i;
    makeReport(data, words, one('#report'), i, chooseClass);
    list.show(listed.length);
    show('report');
    one('#report').scrollTop = 0;
    one('#report').focus({ preventScroll: true });
    one('#main').scrollIntoView();
  };
  const closeReport = () => {
    show('tree');
    one('#list').focus({ preventScroll: true });
  };

  // Search.
  const search = () => {
    result = find(state.find, labels[state.label], state.value);
    shownOf = new Int32Array(classes.length);
    if (result.isIn === null) {
      classes.forEach((c) => { shownOf[c.i] = c.size; });
    } else {
      result.isIn.forEach((isIn, i) => { shownOf[targets.inClass[i]] += isIn; });
    }
    if (state.class >= 0 && shownOf[state.class] === 0) {
      state.class = -1;
      isLit = pathOf(data, -1);
    }
    forest.tally = tallyOf(data, shownOf, result.isIn === null);
    hits = null;
    const found = result.isIn ? shownOf.reduce((a, b) => a + b, 0) : 0, calls = result.isFound ? hitList().length : 0;
    one('#found').textContent = result.isIn === null ? '' : `${words.targetsText(found)}${calls > 0 ? `, ${words.plural(calls, 'call')}` : ''}`;
    if (calls > 0) {
      hits.slice(0, MORE).forEach(forest.reveal);
    }
    showTree(calls > 0 ? hits[0] : 0);
    showClasses();
    showList();
    keep();
  };
  // hits are the nodes that were found and are in, without ones below others of the same function.
  let hits = null;
  const hitList = () => {
    if (hits === null) {
      hits = [];
      for (let node = 1; node <= functions.count && result.isFound; node++) {
        if (result.isFound[node] && forest.tally.targets[node] > 0) {
          hits.push(node);
        }
      }
    }
    return hits;
  };
  let hitAt = -1;
  const stepHit = (by) => {
    const all = hitList();
    if (all.length > 0) {
      hitAt = (hitAt + by + all.length) % all.length;
      forest.reveal(all[hitAt]);
      show('tree');
      showTree(all[hitAt]);
      one('#tree').focus({ preventScroll: true });
    }
  };
  const values = () => {
    const label = labels[state.label], seen = new Set(label ? label.value : []);
    one('#values').replaceChildren(...Array.from(seen).filter(Boolean).slice(0, 200).map((v) => Object.assign(element('option'), { value: texts[v] })));
    one('#value').disabled = !label;
  };
  const typed = () => {
    clearTimeout(timer);
    const next = { find: one('#find').value, label: Number(one('#label').value), value: one('#value').value };
    if (Object.keys(next).some((name) => next[name] !== state[name])) {
      Object.assign(state, next);
      hitAt = -1;
      search();
    }
  };
  let timer = 0;
  ['#find', '#value'].forEach((box) => one(box).addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(typed, 120);
  }));
  one('#label').addEventListener('change', () => {
    typed();
    values();
  });

  // Keys.
  const toggleHelp = () => {
    one('#help').hidden = !one('#help').hidden;
    one('#keys').setAttribute('aria-expanded', String(!one('#help').hidden));
  };
  const goBack = () => {
    if (!one('#help').hidden) {
      toggleHelp();
    } else if (state.view !== 'tree') {
      closeReport();
    } else if (chosen || state.class >= 0) {
      chooseClass(-1);
    } else {
      one('#find').value = one('#value').value = '';
      typed();
    }
  };
  const keys = {
    '/': () => one('#find').focus(), '?': toggleHelp, Escape: goBack, n: () => stepHit(1), N: () => stepHit(-1),
    c: () => (one('#classes [aria-pressed=true]') || one('#classes button') || one('#find')).focus(), l: () => one('#list').focus(),
  };
  document.addEventListener('keydown', (pressed) => {
    if (pressed.ctrlKey || pressed.metaKey || pressed.altKey || pressed.defaultPrevented || pressed.target.tagName === 'SELECT') {
      return;
    }
    if (pressed.target.tagName === 'INPUT') {
      if (pressed.key === 'Enter') {
        typed();
        hitList().length > 0 ? stepHit(1) : one('#list').focus({ preventScroll: true });
        pressed.preventDefault();
      } else if (pressed.key === 'Escape') {
        pressed.target.value = '';
        typed();
        one('#list').focus({ preventScroll: true });
      }
    } else if (views[pressed.key - 1]) {
      show(views[pressed.key - 1]);
      one(`#tabs [data-view=${state.view}]`).focus();
    } else if (keys[pressed.key]) {
      keys[pressed.key]();
      pressed.preventDefault();
    }
  });
  one('#tabs').addEventListener('keydown', (pressed) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[pressed.key];
    if (by) {
      show(views[(views.indexOf(state.view) + by + views.length) % views.length]);
      one(`#tabs [data-view=${state.view}]`).focus();
    }
  });
  one('#tabs').addEventListener('click', (clicked) => clicked.target.dataset.view && show(clicked.target.dataset.view));
  one('#keys').addEventListener('click', toggleHelp);
  one('#all').addEventListener('click', () => chooseClass(-1));

  // Links.
  let isRestoring = false;
  const keep = () => {
    if (isRestoring) {
      return;
    }
    const link = new URLSearchParams();
    const put = (name, is, value) => is && link.set(name, value);
    put('class', state.class >= 0, state.class + 1);
    put('target', state.target > 0, state.target);
    put('view', state.view !== 'tree', state.view);
    put('find', state.find, state.find);
    put('label', state.label >= 0 && state.value, (labels[state.label] || {}).name);
    put('value', state.label >= 0 && state.value, state.value);
    try {
      history.replaceState(null, '', `#${link}`);
    } catch (error) {
      // A page in a frame has no address of its own.
    }
  };
  const restore = () => {
    const link = new URLSearchParams(location.hash.slice(1)), numberAt = (name, most) => Number(link.get(name)) >= 1 && Number(link.get(name)) <= most ? Math.floor(Number(link.get(name))) : 0;
    isRestoring = true;
    state.find = one('#find').value = link.get('find') || '';
    state.label = labels.findIndex((label) => label.name === link.get('label'));
    one('#label').value = String(state.label);
    state.value = one('#value').value = link.get('value') || '';
    values();
    state.class = numberAt('class', classes.length) - 1;
    search();
    if (state.class >= 0) {
      light();
      showList();
    }
    const target = numberAt('target', targets.count), view = views.includes(link.get('view')) ? link.get('view') : 'tree';
    if (target > 0) {
      openTarget(target);
    }
    show(view);
    isRestoring = false;
  };
  addEventListener('hashchange', restore);

  document.documentElement.classList.add('app');
  one('nav').hidden = one('#app').hidden = false;
  one('#filter').hidden = labels.length === 0;
  one('#label').append(...[{ name: 'any label' }, ...labels].map((label, i) => Object.assign(element('option', label.name), { value: i - 1 })));
  one('#report').append(element('p', `Choose a ${words.word} in the list.`, 'f'));
  if (one('#operations') && one('[data-view=operations]')) {
    showOperations(data, words, one('#operations'));
    showModules(data, words, one('#modules'), (m, b) => narrow(`with ${m.name} ${b.id}`, (i) => b.targets.some(([from, to]) => i >= from && i < to)));
  }
  shownOf = Int32Array.from(classes, (c) => c.size);
  forest.tally = tallyOf(data, shownOf, true);
  forest.openWhereClassesPart(80);
  restore();
};

(async () => {
  const wait = one('#wait');
  wait.hidden = false;
  try {
    run(readComparison(await packedColumns()));
    wait.hidden = true;
  } catch (error) {
    wait.textContent = `This browser cannot read the stacks (${error}). The comparison is below as text.`;
    document.documentElement.classList.remove('app');
  }
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
