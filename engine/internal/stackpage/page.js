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

  // Search: a stack stays where each word is in a place of it, and the places that have one are
  // marked, and counted. A place is a line, or a part of a value. What the search opened is closed
  // again by its end.
  const places = '.y, .t, .r, pre > span, .k li, .ids span';
  const placesOf = (stack) => every(places, stack)
    .map((e) => one(':scope > details > summary', e) || e) // of a value with parts its own line
    .map((element) => ({
      element, text: element.textContent.toLowerCase(),
      full: every('.n[title]', element).map((e) => e.title).join('\n').toLowerCase(),
    }));
  const isIn = (place, word) => place.text.includes(word) || place.full.includes(word);
  const mostOpened = 400; // elements that a search opens
  const opened = new Set();
  const reveal = (element) => {
    for (let e = element.closest('details'); e; e = e.parentElement.closest('details')) {
      const isItsTitle = e.firstElementChild.contains(element);
      if (!e.open && !isItsTitle && opened.size < mostOpened) {
        e.open = true;
        opened.add(e);
      }
    }
  };
  // The words themselves are marked where the browser can mark what is no element.
  const highlight = typeof Highlight === 'function' && CSS.highlights ? new Highlight() : null;
  if (highlight) {
    CSS.highlights.set('found', highlight);
    document.documentElement.classList.add('marks');
  }
  const mostMarked = 5000;
  const markWords = (place, words) => {
    const nodes = [], walker = document.createTreeWalker(place.element, NodeFilter.SHOW_TEXT);
    let length = 0;
    while (walker.nextNode()) {
      nodes.push({ node: walker.currentNode, start: length });
      length += walker.currentNode.data.length;
    }
    if (length !== place.text.length) {
      return; // a letter has another length as a small one
    }
    const at = (offset) => nodes.findLast((n) => n.start <= offset);
    words.forEach((word) => {
      for (let i = place.text.indexOf(word); i >= 0 && highlight.size < mostMarked; i = place.text.indexOf(word, i + word.length)) {
        const from = at(i), to = at(i + word.length - 1), range = new Range();
        range.setStart(from.node, i - from.start);
        range.setEnd(to.node, i + word.length - to.start);
        highlight.add(range);
      }
    });
  };
  const plural = (n, name) => `${n} ${name}${n === 1 ? '' : 's'}`;
  let known = null, hits = [];
  const search = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    known = known || stacks.map(placesOf);
    hits.forEach((e) => e.classList.remove('hit'));
    hits = [];
    opened.forEach((e) => { e.open = false; });
    opened.clear();
    if (highlight) {
      highlight.clear();
    }
    let shown = 0;
    stacks.forEach((stack, i) => {
      const isShown = words.every((word) => known[i].some((place) => isIn(place, word)));
      stack.classList.toggle('miss', !isShown);
      if (!isShown || words.length === 0) {
        return;
      }
      shown++;
      known[i].filter((place) => words.some((word) => isIn(place, word))).forEach((place) => {
        place.element.classList.add('hit');
        hits.push(place.element);
        reveal(place.element);
        if (highlight) {
          markWords(place, words);
        }
      });
    });
    found.textContent = words.length === 0 ? '' : `${shown} of ${plural(stacks.length, 'stack')}, ${plural(hits.length, 'place')}`;
  };
  const goTo = (e) => {
    if (e.tabIndex < 0) {
      e.tabIndex = -1;
    }
    e.focus();
    e.scrollIntoView({ block: 'nearest' });
  };
  const isSeen = (e) => e.getClientRects().length > 0;
  const focusOf = (hit) => hit.closest('summary') || hit;
  const stepHit = (by) => {
    const seen = hits.filter(isSeen);
    let at = seen.findIndex((hit) => focusOf(hit) === document.activeElement);
    if (at < 0) {
      at = by > 0 ? -1 : seen.length;
    }
    if (seen.length > 0) {
      goTo(focusOf(seen[(at + by + seen.length) % seen.length]));
    }
  };
  let later = 0;
  find.addEventListener('input', () => {
    clearTimeout(later);
    later = setTimeout(search, stacks.length > 200 ? 150 : 0);
  });

  // Keys move through what is seen: stacks, and the frames and variables of those that are open.
  const step = (by) => {
    const rows = every('.s > summary, .s[open] .r, .s[open] .folded > summary, .s[open] .k summary, .under > summary').filter(isSeen);
    let at = rows.indexOf(document.activeElement);
    if (at < 0) {
      at = by > 0 ? -1 : 0;
    }
    const next = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (next) {
      goTo(next);
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
  // Names are short, with the full ones beside them.
  const full = one('#full');
  const toggleFull = () => {
    const isFull = document.documentElement.classList.toggle('full');
    full.setAttribute('aria-pressed', String(isFull));
    full.textContent = isFull ? 'Short names' : 'Full names';
  };
  full.hidden = !one('.n[title]');
  full.addEventListener('click', toggleFull);
  const keys = {
    j: () => step(1),
    k: () => step(-1),
    '/': () => find.focus(),
    n: () => stepHit(1),
    N: () => stepHit(-1),
    '?': toggleHelp,
    f: toggleFull,
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
        stepHit(1);
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

  // The page opens where the program failed, unless it was somewhere else before.
  const own = one('.own');
  if (own && !location.hash && scrollY === 0 && own.getBoundingClientRect().bottom > innerHeight) {
    own.scrollIntoView({ block: 'center' });
  }
})();
