// SPDX-License-Identifier: Apache-2.0
'use strict';
(() => {
  const one = (selector, of = document) => of.querySelector(selector);
  const every = (selector, of = document) => Array.from(of.querySelectorAll(selector));
  const stacks = every('.s');
  const find = one('#find'), found = one('#found');

  // The text form of a stack is the text of its element, but for what only the page has.
  const textOf = (stack) => {
    const copy = stack.cloneNode(true);
    every('.x, .m, .by', copy).forEach((e) => e.remove());
    return copy.textContent;
  };

  const copyByHand = (text) => {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand('copy');
    area.remove();
    return isCopied ? Promise.resolve() : Promise.reject(new Error('the browser does not copy'));
  };

  const copyStack = (stack) => {
    const text = textOf(stack);
    const say = (result) => {
      const button = one('.copy', stack);
      if (button) {
        button.textContent = result;
        setTimeout(() => { button.textContent = 'Copy as text'; }, 1500);
      }
    };
    const copied = navigator.clipboard ? navigator.clipboard.writeText(text).catch(() => copyByHand(text)) : copyByHand(text);
    copied.then(() => say('Copied'), () => say('Not copied'));
  };

  // A stack gets its button when it is first open: a page may have thousands.
  const addButton = (stack) => {
    if (!stack.open || one(':scope > .copy', stack)) {
      return;
    }
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'copy x';
    button.textContent = 'Copy as text';
    button.addEventListener('click', () => copyStack(stack));
    one('summary', stack).after(button);
  };
  stacks.forEach((stack) => {
    addButton(stack);
    stack.addEventListener('toggle', () => addButton(stack));
  });

  // Search: a stack stays where each word is somewhere in it, and of its frames those that
  // have one are marked. What the search opened is closed again by its end.
  let texts = null;
  const opened = new Set();
  const search = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    texts = texts || stacks.map((stack) => stack.textContent.toLowerCase());
    every('.hit').forEach((row) => row.classList.remove('hit'));
    let shown = 0, frames = 0;
    stacks.forEach((stack, i) => {
      const isShown = words.every((word) => texts[i].includes(word));
      stack.classList.toggle('miss', !isShown);
      if (!isShown) {
        return;
      }
      shown++;
      if (words.length === 0) {
        return;
      }
      const hits = every('.r', stack).filter((row) => {
        const text = row.textContent.toLowerCase();
        return words.some((word) => text.includes(word));
      });
      hits.forEach((row) => row.classList.add('hit'));
      frames += hits.length;
      if (hits.length > 0 && !stack.open && opened.size < 50) {
        stack.open = true;
        opened.add(stack);
      }
    });
    if (words.length === 0) {
      opened.forEach((stack) => { stack.open = false; });
      opened.clear();
    }
    found.textContent = words.length === 0 ? '' : `${shown} of ${stacks.length} stacks, ${frames} frames`;
  };
  let later = 0;
  find.addEventListener('input', () => {
    clearTimeout(later);
    later = setTimeout(search, stacks.length > 200 ? 150 : 0);
  });

  // Keys move through what is seen: stacks, and the frames and variables of those that are open.
  const isSeen = (e) => e.getClientRects().length > 0;
  const step = (by) => {
    const rows = every('.s > summary, .s[open] .r, .s[open] .k summary, #modules > summary').filter(isSeen);
    let at = rows.indexOf(document.activeElement);
    if (at < 0) {
      at = by > 0 ? -1 : 0;
    }
    const next = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (next) {
      if (next.tabIndex < 0) {
        next.tabIndex = -1;
      }
      next.focus();
      next.scrollIntoView({ block: 'nearest' });
    }
  };
  const enter = () => {
    const row = document.activeElement;
    if (!row || !row.matches('.r')) {
      return false; // a summary opens by itself
    }
    const inside = [];
    for (let e = row.nextElementSibling; e && !e.matches('.r'); e = e.nextElementSibling) {
      if (e.matches('details')) {
        inside.push(e);
      }
    }
    const isOpen = inside.some((e) => e.open);
    inside.forEach((e) => { e.open = !isOpen; });
    return true;
  };
  const help = one('#help'), keysButton = one('#keys');
  const toggleHelp = () => {
    help.hidden = !help.hidden;
    keysButton.setAttribute('aria-expanded', String(!help.hidden));
  };
  const keys = {
    j: () => step(1),
    k: () => step(-1),
    '/': () => find.focus(),
    '?': toggleHelp,
    c: () => {
      const stack = document.activeElement.closest('.s') || stacks.find(isSeen);
      if (stack) {
        copyStack(stack);
      }
    },
    Enter: enter,
  };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.target === find) {
      if (event.key === 'Escape') {
        find.value = '';
        search();
        find.blur();
      } else if (event.key === 'Enter') {
        clearTimeout(later);
        search();
        find.blur();
        step(1);
        event.preventDefault();
      }
      return;
    }
    const act = keys[event.key];
    if (act && act() !== false) {
      event.preventDefault();
    }
  });

  const all = one('#all');
  all.addEventListener('click', () => {
    const isOpening = stacks.some((stack) => !stack.open);
    stacks.forEach((stack) => { stack.open = isOpening; });
    opened.clear();
    all.textContent = isOpening ? 'Close all' : 'Open all';
  });
  keysButton.addEventListener('click', toggleHelp);

  // Browsers that do not print what is closed are made to.
  const printed = [];
  addEventListener('beforeprint', () => stacks.filter((s) => !s.open).forEach((s) => { s.open = true; printed.push(s); }));
  addEventListener('afterprint', () => printed.splice(0).forEach((s) => { s.open = false; }));

  one('nav').hidden = false;
})();
