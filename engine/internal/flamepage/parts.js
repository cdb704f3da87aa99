// SPDX-License-Identifier: Apache-2.0

// The parts of the page beside the graphs: the range of time, the table, the list of threads.

const numberScales = {
  nanoseconds: [[1e9, ' s'], [1e6, ' ms'], [1e3, ' µs'], [1, ' ns']],
  bytes: [[2 ** 30, ' GiB'], [2 ** 20, ' MiB'], [2 ** 10, ' KiB'], [1, ' B']],
};
const amountOf = (n, unit) => {
  const scales = numberScales[unit];
  if (!scales || n === 0) {
    return n.toLocaleString('en');
  }
  const [divide, name] = scales.find(([least]) => Math.abs(n) >= least) || scales[scales.length - 1];
  return (divide === 1 ? String(n) : (n / divide).toFixed(2)) + name;
};
const percentOf = (part, whole) => whole > 0 ? `${(100 * part / whole).toFixed(1)}%` : '-';

// makeTimeline makes the histogram of samples by time. hooks: changed(from, to), null and null
// for all of it; colors().
const makeTimeline = (canvas, hooks) => {
  const own = { from: null, to: null, end: 0 };
  let bars = [], hits = [], most = 0, anchor = null; // bars: by kind of code, on one another
  const brush = canvas.getContext('2d');
  const label = (t) => amountOf(Math.round(t) * 1000, 'nanoseconds');

  const drawBars = (width, high) => {
    const c = hooks.colors(), colors = hooks.kindColors(), step = width / hits.length;
    const draw = (i, n, from, color) => {
      const h = Math.max(n / most * (high - 4), 1);
      brush.fillStyle = color;
      brush.fillRect(i * step, high - from - h, Math.max(step - 0.5, 1), h);
      return from + h;
    };
    hits.forEach((hit, i) => {
      let top = 0;
      bars.forEach((list, kind) => { top = list[i] > 0 ? draw(i, list[i], top, colors[kind]) : top; });
      if (hit > 0) {
        draw(i, hit, 0, c.hit);
      }
    });
    if (own.from !== null) {
      const x = own.from / own.end * width, to = own.to / own.end * width;
      brush.globalAlpha = 0.75;
      brush.fillStyle = c.back;
      brush.fillRect(0, 0, x, high);
      brush.fillRect(to, 0, width - to, high);
      brush.globalAlpha = 1;
      brush.fillStyle = c.accent;
      brush.fillRect(x - 1, 0, 2, high);
      brush.fillRect(to - 1, 0, 2, high);
    }
  };
  own.draw = () => {
    const width = canvas.clientWidth, high = canvas.clientHeight, ratio = devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(high * ratio);
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (width > 0) {
      drawBars(width, high);
    }
    const text = own.from === null ? `all of ${label(own.end)}` : `${label(own.from)} to ${label(own.to)} of ${label(own.end)}`;
    one('#range').textContent = own.from === null ? `${text}: drag to select` : text;
    canvas.setAttribute('aria-label', `Samples by time, ${text}`);
    one('#norange').hidden = own.from === null;
  };

  // show counts the samples that pass: isIn of each, by the kind of their calls, and the ones in
  // calls that are marked.
  own.show = (event, isIn, kindOf, isMarked) => {
    const count = Math.max(Math.floor((canvas.clientWidth || 600) / 2), 1);
    own.end = event.times[event.times.length - 1] || 1;
    bars = hooks.kindColors().map(() => new Float64Array(count));
    hits = new Float64Array(count);
    const sum = new Float64Array(count);
    for (let i = 0; i < event.times.length; i++) {
      if (isIn[i]) {
        const at = Math.min(Math.floor(event.times[i] / own.end * count), count - 1);
        bars[kindOf(event.calls[i])][at] += event.weights[i];
        sum[at] += event.weights[i];
        if (isMarked && isMarked(event.calls[i])) {
          hits[at] += event.weights[i];
        }
      }
    }
    most = sum.reduce((a, b) => Math.max(a, b), 1);
    own.draw();
  };
  own.select = (from, to) => {
    own.from = from === null ? null : Math.max(Math.min(from, to), 0);
    own.to = from === null ? null : Math.min(Math.max(from, to), own.end);
    own.draw();
    hooks.changed(own.from, own.to);
  };

  const timeAt = (event) => {
    const place = canvas.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - place.left) / place.width, 0), 1) * own.end;
  };
  canvas.addEventListener('pointerdown', (event) => {
    anchor = timeAt(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    canvas.title = label(timeAt(event));
    if (anchor !== null && Math.abs(timeAt(event) - anchor) > own.end * 3 / canvas.clientWidth) {
      own.select(anchor, timeAt(event));
    }
  });
  canvas.addEventListener('pointerup', (event) => {
    if (anchor !== null && Math.abs(timeAt(event) - anchor) <= own.end * 3 / canvas.clientWidth) {
      own.select(null, null); // a click
    }
    anchor = null;
  });
  canvas.addEventListener('keydown', (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key] * own.end / 50;
    if (step) {
      const [from, to] = own.from === null ? [0, own.end / 10] : [own.from, own.to];
      const least = event.shiftKey ? Math.max(step, from - to + own.end / 50) : Math.min(Math.max(step, -from), own.end - to);
      own.select(event.shiftKey ? from : from + least, to + least);
      event.preventDefault();
    }
  });
  one('#norange').addEventListener('click', () => own.select(null, null));
  new ResizeObserver(() => hooks.resized()).observe(canvas);
  return own;
};

// makeTable makes the table of functions: only rows that are seen are there. columns: of each
// its title, its value of a function, its text, the part of the whole that a bar shows (if it has
// one), and whether a narrow page leaves it out. hooks:
// name(f) makes the cell of a name, chosen(f).
const makeTable = (holder, columns, hooks) => {
  const own = { rows: [], by: 0, isUpward: false, chosen: -1 };
  const high = 24, head = holder.querySelector('thead'), body = holder.querySelector('tbody');

  const rowOf = (f, index) => {
    const row = element('tr');
    row.dataset.f = String(f);
    row.setAttribute('aria-rowindex', String(index + 2));
    row.classList.toggle('chosen', f === own.chosen);
    columns.forEach((c) => {
      const cell = element('td', c.text(f), `v ${c.isWide ? 'wide' : ''} ${c.part ? 'part' : ''}`);
      cell.style.setProperty('--share', c.part ? `${100 * c.part(f)}%` : '0');
      row.append(cell);
    });
    row.append(hooks.name(f));
    return row;
  };
  const gap = (rows) => {
    const row = element('tr');
    row.style.height = `${rows * high}px`;
    row.setAttribute('aria-hidden', 'true');
    return row;
  };
  own.draw = () => {
    const from = Math.max(Math.floor(holder.scrollTop / high) - 5, 0);
    const to = Math.min(from + Math.ceil(holder.clientHeight / high) + 10, own.rows.length);
    const rows = own.rows.slice(from, to).map((f, i) => rowOf(f, from + i));
    body.replaceChildren(gap(from), ...rows, gap(own.rows.length - to));
  };
  const sort = () => {
    const c = columns[own.by], sign = own.isUpward ? 1 : -1;
    const value = c ? c.value : null;
    own.rows.sort((a, b) => (value ? sign * (value(a) - value(b)) : sign * hooks.compare(b, a)) || a - b);
    Array.from(head.rows[0].cells).forEach((cell, i) => {
      cell.setAttribute('aria-sort', i !== own.by ? 'none' : own.isUpward ? 'ascending' : 'descending');
    });
    own.draw();
  };
  own.show = (rows) => {
    own.rows = rows;
    holder.querySelector('table').setAttribute('aria-rowcount', String(rows.length + 1));
    sort();
  };
  own.choose = (f) => {
    own.chosen = f;
    own.draw();
  };
  const titles = element('tr');
  [...columns, { title: 'Function' }].forEach((c, i) => {
    const cell = element('th', undefined, [c.value ? 'v' : '', c.isWide ? 'wide' : ''].join(' ')), button = element('button', c.title);
    cell.scope = 'col';
    button.type = 'button';
    button.addEventListener('click', () => {
      own.isUpward = own.by === i && !own.isUpward;
      own.by = i;
      sort();
    });
    cell.append(button);
    titles.append(cell);
  });
  head.append(titles);

  const step = (by) => {
    const index = Math.min(Math.max(own.rows.indexOf(own.chosen) + by, 0), own.rows.length - 1);
    holder.scrollTop = Math.min(Math.max(holder.scrollTop, (index + 2) * high - holder.clientHeight), index * high);
    hooks.chosen(own.rows[index], false);
  };
  holder.addEventListener('keydown', (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -own.rows.length, End: own.rows.length }[event.key];
    if (event.target === holder && by && own.rows.length > 0) {
      step(by);
      event.preventDefault();
    } else if (event.target === holder && event.key === 'Enter' && own.chosen >= 0) {
      hooks.chosen(own.chosen, true);
    }
  });
  body.addEventListener('click', (event) => {
    const row = event.target.closest('tr[data-f]');
    if (row) {
      hooks.chosen(Number(row.dataset.f), true);
    }
  });
  holder.addEventListener('scroll', own.draw, { passive: true });
  new ResizeObserver(own.draw).observe(holder);
  return own;
};

// processesOf groups threads by process, each with the weights of its threads, the heaviest first.
const processesOf = (threads, weights) => {
  const byPID = new Map();
  threads.forEach((thread, i) => {
    if (!byPID.has(thread.PID)) {
      byPID.set(thread.PID, { pid: thread.PID, weight: 0, threads: [] });
    }
    const process = byPID.get(thread.PID);
    process.weight += weights[i];
    process.threads.push(i);
  });
  const list = Array.from(byPID.values()).sort((a, b) => b.weight - a.weight);
  list.forEach((process) => {
    process.threads.sort((a, b) => weights[b] - weights[a]);
    const main = process.threads.find((i) => threads[i].TID === threads[i].PID);
    process.name = threads[main === undefined ? process.threads[0] : main].Name;
  });
  return list;
};

const MOST_THREADS = 500; // rows of the list

// showThreads fills the list of threads. off are the ones that are left out; changed is called
// when they are others.
const showThreads = (holder, threads, weights, off, changed) => {
  const whole = weights.reduce((a, b) => a + b, 0);
  let left = MOST_THREADS, hidden = 0;
  const row = (text, of, weight, className) => {
    const line = element('div', undefined, className), label = element('label'), box = element('input'), only = element('button', 'only');
    box.type = 'checkbox';
    box.checked = of.every((i) => !off.has(i));
    box.indeterminate = !box.checked && of.some((i) => !off.has(i));
    box.addEventListener('change', () => {
      of.forEach((i) => box.checked ? off.delete(i) : off.add(i));
      changed();
    });
    only.type = 'button';
    only.setAttribute('aria-label', `only ${text}`);
    only.addEventListener('click', () => {
      threads.forEach((thread, i) => off.add(i));
      of.forEach((i) => off.delete(i));
      changed();
    });
    label.append(box, element('span', text));
    line.style.setProperty('--share', whole > 0 ? `${100 * weight / whole}%` : '0');
    line.append(label, element('span', percentOf(weight, whole), 'v'), only);
    return line;
  };
  const rows = [row('all threads', threads.map((thread, i) => i), whole, 'process')];
  processesOf(threads, weights).forEach((process) => {
    if (left <= 0) {
      hidden += process.threads.length;
      return;
    }
    rows.push(row(process.pid < 0 ? process.name || '[unknown]' : `${process.name || '[unknown]'} ${process.pid}`, process.threads, process.weight, 'process'));
    left -= process.threads.length;
    if (process.threads.length > 1) {
      process.threads.slice(0, MOST_THREADS).forEach((i) => {
        rows.push(row(`${threads[i].Name || '[unknown]'} ${threads[i].TID < 0 ? '' : threads[i].TID}`, [i], weights[i], 'thread'));
      });
      hidden += Math.max(process.threads.length - MOST_THREADS, 0);
    }
  });
  if (hidden > 0) {
    rows.push(element('p', `${hidden} lighter threads are not listed.`, 'f'));
  }
  holder.replaceChildren(...rows);
};
