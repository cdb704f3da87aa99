// SPDX-License-Identifier: Apache-2.0

// Words and parts of the page: names of functions and targets, cards of classes, reports of targets, tables.

const MORE = 50; // elements of a list that are added at a time

// inPieces fills an element with the elements of a long list, a piece at a time.
const inPieces = (holder, count, make, most = MORE) => {
  let at = 0;
  const more = element(holder.tagName === 'OL' ? 'li' : 'p'), button = element('button');
  button.type = 'button';
  more.append(button);
  const add = () => {
    const to = Math.min(at + most, count), isFocused = document.activeElement === button;
    let first = null;
    for (; at < to; at++) {
      const e = make(at);
      first = first || e;
      holder.insertBefore(e, more.parentNode === holder ? more : null);
    }
    button.textContent = `${Math.min(most, count - at).toLocaleString('en')} more of ${(count - at).toLocaleString('en')}`;
    if (at < count) {
      holder.append(more);
    } else {
      more.remove();
    }
    if (isFocused && first) {
      (first.matches('button') ? first : first.querySelector('button') || button).focus();
    }
  };
  button.addEventListener('click', add);
  add();
};

const makeWords = (data) => {
  const { texts, frames, targets, labels, classes } = data;
  const numberOf = (n) => n.toLocaleString('en');
  const plural = (n, word) => `${numberOf(n)} ${word}${n === 1 ? '' : word.endsWith('s') ? 'es' : 's'}`;
  const word = data.byThread ? 'thread' : 'target';
  const targetsText = (n) => plural(n, word);
  const first = ['thread', 'rank', 'host', 'pod', 'node', 'local_rank'];
  const order = labels.map((label, k) => k).sort((a, b) => {
    const of = (k) => (first.indexOf(labels[k].name) + 99) % 99; // one that is not there is the last
    return of(a) - of(b) || a - b;
  });
  const shortOf = (f) => texts[frames.short[f] || frames.name[f]];
  const placeOf = (f) => frames.file[f] === 0 ? '' : texts[frames.file[f]] + (frames.line[f] > 0 ? `:${frames.line[f]}${frames.column[f] > 0 ? `:${frames.column[f]}` : ''}` : '');
  const kindOf = (f) => [frames.flags[f] & WAVE ? 'wave' : '', frames.flags[f] & INLINED ? 'inlined' : '', texts[frames.runtime[f]], frames.flags[f] & GUESS ? 'a guess' : ''].filter(Boolean).join(', ');
  // A label that has one value in all targets names none.
  const naming = order.filter((k) => targets.count === 1 || labels[k].value.subarray(1).some((v) => v !== labels[k].value[1]));
  const labelText = (value) => naming.filter((k) => value(k)).map((k) => `${labels[k].name} ${value(k)}`).join(', ');
  const ofTarget = (i) => labelText((k) => texts[labels[k].value[i]]);
  const nameOf = (i) => ofTarget(i) || texts[targets.path[i]] || `${word} ${i}`;
  const ofClass = (c) => labelText((k) => c.labels[k]);
  const momentOf = (m) => new Date(m / 1000).toISOString().replace('T', ' ').replace('Z', ' UTC');
  const nodeName = (node) => shortOf(data.functions.frame[node]);
  const largest = classes.reduce((most, c) => c.unread ? most : Math.max(most, c.size), 0);
  // pathTo are the calls from a node to one that it leads to, and onlyPath the ones that it alone leads to, in short.
  const { parent, end, ends } = data.functions;
  const pathTo = (first, last) => {
    let inside = 0;
    for (let node = last; node > first; node = parent[node]) {
      inside++;
    }
    return nodeName(first) + (inside > 1 ? ` › ${numberOf(inside - 1)} more` : '') + (inside > 0 ? ` › ${nodeName(last)}` : '');
  };
  const onlyPath = (first) => {
    let last = first;
    while (ends[last] === 0 && last + 1 < end[last] && end[last + 1] === end[last]) {
      last++;
    }
    return pathTo(first, last);
  };
  // doingOf says what a thread does beside standing in a frame.
  const doingOf = (flags) => [flags & CRASHED ? 'crashed' : '', flags & MOVES ? 'moves on' : flags & STILL ? 'stands still' : ''].filter(Boolean).join(', ');
  const roleOf = (role) => role === 'main' ? 'the main thread' : /^(wave|goroutine) of /.test(role) ? role : `thread ${role}`;
  const isRest = (c) => c.unread === '' && c.parting === null && c.size === largest;
  return { numberOf, plural, word, targetsText, order, shortOf, placeOf, kindOf, ofTarget, nameOf, ofClass, momentOf, nodeName, pathTo, onlyPath, doingOf, roleOf, rest: classes.findLastIndex(isRest) };
};

// badge is the number of a class, in its colour.
const badge = (c, rest) => {
  const e = element('b', String(c.i + 1), `badge${c.unread ? ' bad' : c.i === rest ? ' rest' : ''}`);
  e.style.setProperty('--hue', String((c.i * 137 + 205) % 360)); // neighbours differ
  return e;
};

// partingLines say where a class parts from the others, in the words of the text form.
const partingLines = (data, words, c) => {
  const { role, node, last, here, there, missing, more } = c.parting, { threads, texts } = data;
  const line = (className, ...parts) => {
    const e = element('span', undefined, `line ${className}`);
    e.append(...parts);
    return e;
  };
  const name = (text) => element('span', text, 'n'), none = (text) => element('span', text, 'f');
  const lines = [line('', `${words.roleOf(role)} parts from the others `, ...(last > 0 ? ['in ', name(words.nodeName(last))] : ['at the outermost frame']))];
  const own = line('here', 'here: ', here > 0 ? name(words.pathTo(here, node)) : none(missing ? 'none goes on as these do' : 'ends there'));
  for (let t = threads.from[c.i]; t < threads.from[c.i + 1] && !missing; t++) {
    const doing = threads.node[t] === node && texts[threads.role[t]] === role ? words.doingOf(threads.flags[t]) : '';
    if (doing) {
      own.append(` (${doing})`);
      break;
    }
  }
  lines.push(own);
  there.slice(0, 3).forEach((branch) => {
    lines.push(line('there', `others, ${words.targetsText(branch.targets)}: `, branch.node > 0 ? name(words.onlyPath(branch.node)) : none('end there')));
  });
  const left = more + Math.max(there.length - 3, 0);
  if (left > 0) {
    lines.push(line('there', `others in ${words.plural(left, 'other way')}`));
  }
  return lines;
};

const factsOf = (c) => c.facts.map((fact) => element('span', fact, 'line w'));

// buildLines are the builds that a class alone has.
const buildLines = (c) => {
  const lines = [];
  for (let i = 0; i < c.builds.length; i += 2) {
    const line = element('span', undefined, 'line');
    line.append(element('span', c.builds[i], 'p'), ` build ${c.builds[i + 1] || 'not known'}`);
    lines.push(line);
  }
  return lines;
};

// card is a class. shown is how many of its targets are shown.
const card = (data, words, c, shown) => {
  const button = element('button', undefined, `card${c.unread ? ' unread' : ''}`);
  button.type = 'button';
  button.dataset.c = c.i;
  const title = element('span', undefined, 'line title');
  title.append(badge(c, words.rest), ' ', element('span', shown === c.size ? words.targetsText(c.size) : `${words.numberOf(shown)} of ${words.targetsText(c.size)}`, 'h'));
  if (c.i === words.rest && data.classes.length > 1) {
    title.append(' ', element('span', 'the most', 'f'));
  }
  button.append(title);
  const labels = words.ofClass(c);
  if (labels) {
    button.append(element('span', labels, 'line labels'));
  }
  button.append(...factsOf(c), ...buildLines(c));
  if (c.unread) {
    button.append(element('span', `not read: ${c.unread}`, 'line w'));
  }
  if (c.parting) {
    button.append(...partingLines(data, words, c));
  } else if (c.isUsual) {
    button.append(element('span', 'most others have its stacks too', 'line f'));
  }
  const more = [c.variants > 1 ? `${words.plural(c.variants, 'variant')} by lines` : '', c.signature && `signature ${c.signature}`].filter(Boolean).join(', ');
  if (more) {
    button.append(element('span', more, 'line f detail'));
  }
  return button;
};

// stackLines are the frames of a stack by lines, innermost first.
const stackLines = (data, words, node, isOwn) => {
  const { lines, frames, texts } = data, list = [];
  for (let at = node; at > 0; at = lines.parent[at]) {
    list.push(at);
  }
  const holder = element('ol');
  inPieces(holder, list.length, (i) => {
    const at = list[i], f = lines.frame[at], row = element('li', undefined, isOwn(lines.of[at]) ? 'own' : '');
    const name = element('span', words.shortOf(f), 'n');
    name.title = texts[frames.name[f]];
    row.append(element('span', `#${i}`, 'f i'), ' ', name);
    const add = (text, className) => text && row.append(' ', element('span', text, className));
    add(words.placeOf(f), 'p');
    add(texts[frames.module[f]] && `in ${texts[frames.module[f]]}`, 'f');
    add(words.kindOf(f), frames.flags[f] & GUESS ? 'w' : 'd');
    return row;
  }, 200);
  return holder;
};

// pairs is a list of names and values.
const pairs = (list) => {
  const holder = element('dl');
  list.filter(([, value]) => value).forEach(([name, value]) => {
    const pair = element('div');
    pair.append(element('dt', name), element('dd', value));
    holder.append(pair);
  });
  return holder;
};

// makeReport fills an element with all that is known of a target.
const makeReport = (data, words, holder, i, choose) => {
  const { targets, stacks, texts, classes, labels, functions } = data;
  const c = classes[targets.inClass[i]], variant = targets.variant[i];
  const stackTitle = (t) => {
    const title = element('h3'), flags = stacks.flags[t];
    title.append(element('span', texts[stacks.role[t]] || 'thread', 'h'));
    const add = (text, className) => text && title.append(' ', element('span', text, className));
    const isOne = data.variantSizes[variant] === 1, count = isOne ? [stacks.threads[t]] : [stacks.least[t], stacks.most[t]];
    add(count[0] !== count[1] && count.length > 1 ? `${words.numberOf(count[0])} to ${words.plural(count[1], 'thread')}` : count[0] === 1 ? '' : words.plural(count[0], 'thread'), 'f');
    const ids = [];
    for (let k = stacks.firstID[t]; k < stacks.firstID[t + 1]; k++) {
      if (stacks.idTarget[k] === i) {
        ids.push(stacks.id[k] % 2 ? texts[(stacks.id[k] - 1) / 2] : String(stacks.id[k] / 2));
      }
    }
    add(ids.join(' '), 'f');
    add(flags & CRASHED ? 'crashed' : '', 'chip w');
    add(flags & MOVES ? 'moves: these are the frames that it was in at all moments' : '', 'chip');
    add(flags & STILL ? 'stands still' : '', 'chip');
    add(stacks.incomplete[t] > 0 ? 'ends early' : '', 'chip w');
    return title;
  };
  const here = c.parting ? c.parting.here : 0;
  const isOwn = (node) => here > 0 && node >= here && node < functions.end[here];
  const list = [];
  for (let t = stacks.from[variant]; c.variants > 0 && t < stacks.from[variant + 1]; t++) { // none of one that was not read
    list.push(t);
  }
  const rank = (t) => (stacks.flags[t] & CRASHED ? 0 : 2) + (c.parting && texts[stacks.role[t]] === c.parting.role && isOwn(data.lines.of[stacks.node[t]]) ? 0 : 1);
  list.sort((a, b) => rank(a) - rank(b) || a - b);

  const title = element('h2', words.nameOf(i)), ofClass = element('button');
  ofClass.type = 'button';
  ofClass.append('class ', badge(c, words.rest), ` ${words.targetsText(c.size)}`);
  ofClass.addEventListener('click', () => choose(c.i));
  const moments = Array.from(targets.moments.subarray(targets.firstMoment[i], targets.firstMoment[i + 1]), words.momentOf);
  holder.replaceChildren(title, ofClass, pairs([
    ['path', texts[targets.path[i]]], ...words.order.map((k) => [labels[k].name, texts[labels[k].value[i]]]),
    ['process', targets.pid[i] > 0 ? String(targets.pid[i]) : ''], [targets.times[i] > 1 ? `${words.numberOf(targets.times[i])} moments` : 'moment', moments.join('\n') || (targets.times[i] > 1 ? 'times not known' : '')],
    ['threads', data.byThread || c.unread ? '' : words.numberOf(targets.threads[i])],
  ]));
  holder.append(...(c.unread && !targets.problems[i].length ? [element('span', `not read: ${c.unread}`, 'line w')] : []), ...factsOf(c), ...buildLines(c));
  holder.append(...targets.problems[i].map((problem) => element('span', `${c.unread ? 'not read' : 'problem'}: ${problem}`, 'line w')));
  if (c.parting) {
    const box = element('div', undefined, 'parts');
    box.append(...partingLines(data, words, c));
    holder.append(box);
  }
  const body = element('div');
  holder.append(body);
  inPieces(body, list.length, (k) => {
    const t = list[k], stack = element('section', undefined, `s${stacks.flags[t] & CRASHED ? ' crashed' : ''}`);
    stack.append(stackTitle(t));
    if (stacks.cut[t] > 0) {
      stack.append(element('p', `${words.plural(stacks.cut[t], 'inner frame')} left out of this page`, 'f'));
    }
    stack.append(stacks.node[t] > 0 ? stackLines(data, words, stacks.node[t], isOwn) : element('p', 'no frames', 'f'));
    if (stacks.incomplete[t] > 0) {
      stack.append(element('p', `${stacks.threads[t] > 1 ? `${words.numberOf(stacks.incomplete[t])} of ${words.numberOf(stacks.threads[t])} end` : 'it ends'} early: ${texts[stacks.ends[t]]}`, 'w'));
    }
    return stack;
  });
  if (c.variants > 0 && stacks.more[variant] > 0) {
    holder.append(element('p', `${words.plural(stacks.more[variant], 'more stack')} left out of this page`, 'f'));
  }
};

// table makes a table of rows of cells, each a text or elements.
const table = (titles, rows) => {
  const holder = element('div', undefined, 'wide'), all = element('table'), head = element('tr');
  head.append(...titles.map((title) => Object.assign(element('th', title), { scope: 'col' })));
  all.append(head, ...rows.map((cells) => {
    const row = element('tr');
    row.append(...cells.map((cell) => {
      const td = element('td');
      td.append(...[].concat(cell));
      return td;
    }));
    return row;
  }));
  holder.append(all);
  return holder;
};

const showOperations = (data, words, holder) => {
  const lines = (list, className) => list.map((text) => element('span', text, `line ${className}`));
  holder.replaceChildren(table(['operation', 'ranks', 'missing', 'entered', 'completed', 'no record', 'called from'], data.operations.map((o) => [
    [element('span', o.operation || '[unknown]', 'n'), element('span', `${o.group} ${words.numberOf(o.sequence)}`, 'line f'), ...lines(o.different, 'w')],
    o.ranks, element('span', o.missing, 'w'), o.entered, o.completed, element('span', o.unrecorded, 'f'), lines(o.frames, 'p'),
  ])));
  if (data.operations.length === 0) {
    holder.replaceChildren(element('p', 'There are no records of collective operations.', 'f'));
  }
};

const showModules = (data, words, holder, choose) => {
  const build = (m, b) => {
    const line = element('span', undefined, 'line'), button = element('button', words.targetsText(b.count));
    button.type = 'button';
    button.disabled = b.targets.length === 0;
    button.addEventListener('click', () => choose(m, b));
    line.append(b.id || 'not known', ' ', button);
    return line;
  };
  holder.replaceChildren(table(['module', 'builds'], data.modules.map((m) => [
    element('span', m.name, 'n'), [...m.builds.map((b) => build(m, b)), ...(m.more > 0 ? [element('span', `${words.numberOf(m.more)} more`, 'f')] : [])],
  ])));
  if (data.modules.length === 0) {
    holder.replaceChildren(element('p', `No module has different builds.`, 'f'));
  }
};
