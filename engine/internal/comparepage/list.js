// SPDX-License-Identifier: Apache-2.0

// A list of any length, of which only the rows exist that are seen. The focus stays on the list; the row where it is
// is named to those who cannot see it.

const makeList = (holder, hooks) => {
  const inner = element('div', undefined, 'inner');
  const own = { at: 0, count: 0 };
  let rows = new Map();
  holder.append(inner);

  const rowHeight = () => parseFloat(getComputedStyle(holder).getPropertyValue('--row')) || 24;
  const draw = () => {
    const high = rowHeight(), first = Math.max(Math.floor(holder.scrollTop / high) - 10, 0);
    const last = Math.min(Math.ceil((holder.scrollTop + holder.clientHeight) / high) + 10, own.count), next = new Map();
    inner.style.height = `${own.count * high}px`;
    const put = (i) => {
      const row = rows.get(i) || hooks.row(i);
      row.style.top = `${i * high}px`;
      row.id = i === own.at ? `${holder.id}-at` : '';
      row.classList.toggle('at', i === own.at);
      row.dataset.i = i;
      next.set(i, row);
    };
    for (let i = first; i < last; i++) {
      put(i);
    }
    if (own.count > 0 && !next.has(own.at)) {
      put(own.at);
    }
    rows.forEach((row, i) => next.get(i) === row || row.remove());
    next.forEach((row, i) => rows.get(i) === row || inner.append(row));
    rows = next;
    if (own.count > 0) {
      holder.setAttribute('aria-activedescendant', `${holder.id}-at`);
    } else {
      holder.removeAttribute('aria-activedescendant');
    }
  };
  own.show = (count) => {
    own.count = count;
    own.at = Math.max(Math.min(own.at, count - 1), 0);
    inner.replaceChildren();
    rows = new Map();
    draw();
  };
  own.goTo = (i) => {
    const high = rowHeight();
    own.at = Math.max(Math.min(i, own.count - 1), 0);
    if (own.at * high < holder.scrollTop) {
      holder.scrollTop = own.at * high;
    } else if ((own.at + 1) * high > holder.scrollTop + holder.clientHeight) {
      holder.scrollTop = (own.at + 1) * high - holder.clientHeight;
    }
    draw();
    if (own.count > 0 && hooks.moved) {
      hooks.moved(own.at);
    }
  };
  const page = () => Math.max(Math.floor(holder.clientHeight / rowHeight()) - 1, 1);
  const steps = {
    ArrowDown: () => own.at + 1, ArrowUp: () => own.at - 1, PageDown: () => own.at + page(), PageUp: () => own.at - page(), Home: () => 0, End: () => own.count - 1,
  };
  holder.addEventListener('keydown', (pressed) => {
    if (pressed.ctrlKey || pressed.metaKey || pressed.altKey || own.count === 0) {
      return;
    }
    const step = steps[pressed.key], act = hooks.keys[pressed.key];
    if (step) {
      own.goTo(step());
    } else if (act) {
      act(own.at);
    } else {
      return;
    }
    pressed.preventDefault();
  });
  inner.addEventListener('click', (clicked) => {
    const row = clicked.target.closest('[data-i]');
    if (row) {
      own.goTo(Number(row.dataset.i));
      hooks.clicked(Number(row.dataset.i), clicked.target);
    }
  });
  holder.addEventListener('scroll', draw, { passive: true });
  new ResizeObserver(draw).observe(holder);
  return own;
};
