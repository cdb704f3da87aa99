// SPDX-License-Identifier: Apache-2.0

// A graph of boxes on a canvas: what is seen of it is drawn, and what is narrower than a pixel
// is not. One box has the focus; a hidden element says to a screen reader which.

const ROW = 18, LEAST = 1; // pixels

// rowsOf are the boxes of a graph by level. A box with a rest is no node: it stands for that many
// nodes below its own, each of them too narrow.
const rowsOf = (root, zoomed, width, widthOf) => {
  const rows = [];
  const put = (box) => {
    while (rows.length <= box.level) {
      rows.push([]);
    }
    rows[box.level].push(box);
    return box;
  };
  const outer = [];
  for (let node = zoomed.above; node; node = node.above) {
    outer.unshift(node);
  }
  outer.forEach((node) => put({ node, level: node.level, x: 0, w: width, isAround: true }));
  const open = [put({ node: zoomed, level: zoomed.level, x: 0, w: width })];
  const scale = widthOf(zoomed) > 0 ? width / widthOf(zoomed) : 0;
  while (open.length > 0) {
    const { node, level, x } = open.pop(), list = below(node, scale > 0 ? LEAST / scale : 0);
    let at = x, i = 0;
    for (; i < list.length && widthOf(list[i]) * scale >= LEAST; i++) {
      const w = widthOf(list[i]) * scale;
      open.push(put({ node: list[i], level: level + 1, x: node.view.isInOrder ? x + list[i].offset * scale : at, w }));
      at += w;
    }
    const rest = list.slice(i).reduce((sum, n) => sum + widthOf(n) * scale, 0);
    if (rest >= LEAST) {
      put({ node, level: level + 1, x: at, w: rest, rest: list.length - i });
    }
  }
  rows.forEach((row) => row.sort((a, b) => a.x - b.x));
  return rows;
};

const fitted = (text, w) => {
  const most = Math.floor((w - 8) / fitted.char);
  if (text.length <= most) {
    return text;
  }
  if (most < 12) {
    return most < 2 ? '' : `${text.slice(0, most - 1)}…`;
  }
  const head = Math.floor(most / 3); // ends of names tell more than beginnings
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
};

// makeGraph makes a graph in an element. hooks has what the page knows: colorOf(node),
// isDim(node), textOf(node), shareOf(node), isGuess(node), isGap(node), about(node), told(node),
// zoomed(), pointed(node, event).
const makeGraph = (holder, hooks, isUp) => {
  const canvas = document.createElement('canvas'), spacer = document.createElement('div'), item = document.createElement('div');
  const brush = canvas.getContext('2d');
  item.setAttribute('role', 'treeitem');
  item.className = 'unseen';
  item.id = `${holder.id}-item`;
  holder.setAttribute('aria-activedescendant', item.id);
  spacer.append(canvas);
  holder.append(spacer, item);
  const own = { root: null, zoomed: null, focused: null, holder };
  let rows = [], boxes = new Map(), patterns = {}, height = 0, waiting = false;

  const top = (level) => isUp ? height - (level + 1) * ROW : level * ROW;

  const pattern = (name, paint) => {
    if (!patterns[name]) {
      const tile = document.createElement('canvas');
      tile.width = tile.height = 6;
      const b = tile.getContext('2d');
      b.strokeStyle = b.fillStyle = hooks.colors().ink;
      b.globalAlpha = 0.45;
      paint(b);
      patterns[name] = brush.createPattern(tile, 'repeat');
    }
    return patterns[name];
  };
  const hatch = (b) => {
    b.beginPath();
    [-6, 0, 6].forEach((x) => { b.moveTo(x, 6); b.lineTo(x + 6, 0); });
    b.stroke();
  };
  const dots = (b) => b.fillRect(1, 1, 1.5, 1.5);

  const drawText = (box, y, ink) => {
    const x = Math.max(box.x, 0) + 4;
    const share = hooks.shareOf(box.node), room = share.length * fitted.char + 16;
    let w = box.w;
    brush.fillStyle = ink;
    const name = hooks.textOf(box.node);
    if (box.node.above && w > room + Math.min(name.length, 24) * fitted.char) {
      brush.globalAlpha *= 0.7;
      brush.fillText(share, box.x + w - room + 8, y + 13);
      brush.globalAlpha /= 0.7;
      w -= room;
    }
    const text = fitted(name, w);
    if (text) {
      brush.fillText(text, x, y + 13, w - 6);
    }
  };

  const drawRest = (box, y, c) => {
    brush.globalAlpha = 1;
    brush.fillStyle = c.line;
    brush.fillRect(box.x, y, box.w > 3 ? box.w - 1 : box.w, ROW - 1);
    const text = `${box.rest.toLocaleString('en')} narrower than a pixel`;
    if (box.w > text.length * fitted.char + 8) {
      brush.fillStyle = c.dim;
      brush.fillText(text, box.x + 4, y + 13);
    }
  };
  const drawBox = (box) => {
    const { node, x, w } = box, y = top(box.level), c = hooks.colors();
    if (box.rest) {
      drawRest(box, y, c);
      return;
    }
    const isHit = hooks.isHit(node), size = w > 3 ? w - 1 : w;
    brush.globalAlpha = box.isAround ? 0.55 : hooks.isSearched() && !isHit ? 0.35 : 1;
    brush.fillStyle = isHit ? c.hit : hooks.colorOf(node);
    brush.fillRect(x, y, size, ROW - 1);
    if (w > 3 && (hooks.isGuess(node) || hooks.isGap(node))) {
      brush.fillStyle = hooks.isGap(node) ? pattern('dots', dots) : pattern('hatch', hatch);
      brush.fillRect(x, y, size, ROW - 1);
    }
    if (w > 22) {
      brush.globalAlpha = Math.max(brush.globalAlpha, 0.6);
      drawText(box, y, isHit ? '#1d2330' : c.ink);
    }
    if (node === own.focused && document.activeElement === holder) {
      brush.globalAlpha = 1;
      brush.strokeStyle = c.text;
      brush.lineWidth = 2;
      brush.strokeRect(x + 1, y + 1, Math.max(size - 2, 1), ROW - 3);
    }
  };

  const drawNow = () => {
    waiting = false;
    const width = holder.clientWidth, high = holder.clientHeight, ratio = devicePixelRatio || 1;
    if (!own.root || width === 0) {
      return;
    }
    canvas.style.height = `${high}px`;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(high * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(high * ratio);
    }
    const from = holder.scrollTop;
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.globalAlpha = 1;
    brush.clearRect(0, 0, width, high);
    brush.setTransform(ratio, 0, 0, ratio, 0, -from * ratio);
    brush.font = '12px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
    fitted.char = fitted.char || brush.measureText('0123456789').width / 10;
    rows.forEach((row, level) => {
      if (top(level) + ROW > from && top(level) < from + high) {
        row.forEach(drawBox);
      }
    });
  };
  own.draw = () => {
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(drawNow);
    }
  };

  // lay puts the boxes in their places, and draws them.
  own.lay = () => {
    if (!own.root || holder.clientWidth === 0) {
      return;
    }
    rows = rowsOf(own.root, own.zoomed, holder.clientWidth, own.root.view.widthOf);
    boxes = new Map(rows.flat().filter((box) => !box.rest).map((box) => [box.node, box]));
    height = Math.max(rows.length * ROW, holder.clientHeight);
    spacer.style.height = `${height}px`;
    if (!boxes.has(own.focused)) {
      own.focused = own.zoomed;
    }
    say(own.focused);
    own.draw();
  };

  const say = (node) => {
    const list = node.above ? node.above.below : [node];
    item.setAttribute('aria-level', String(node.level + 1));
    item.setAttribute('aria-posinset', String(list.indexOf(node) + 1));
    item.setAttribute('aria-setsize', String(list.length));
    item.setAttribute('aria-label', hooks.about(node));
    item.setAttribute('aria-selected', 'true');
  };

  const scrollTo = (node) => {
    const y = top(node.level), high = holder.clientHeight;
    if (y < holder.scrollTop) {
      holder.scrollTop = y;
    } else if (y + ROW > holder.scrollTop + high) {
      holder.scrollTop = y + ROW - high;
    }
  };

  own.focusOn = (node) => {
    if (node && boxes.has(node)) {
      own.focused = node;
      say(node);
      scrollTo(node);
      hooks.told(node, own);
      own.draw();
    }
  };
  own.zoomTo = (node) => {
    own.zoomed = own.focused = node;
    own.lay();
    own.focusOn(node);
    hooks.zoomed(own);
  };
  // show shows another tree, at the places of the one before, as far as it has them.
  own.show = (root, path, focus) => {
    const old = own.root ? [pathOf(own.zoomed), pathOf(own.focused)] : [[], []];
    own.root = root;
    own.zoomed = nodeAt(root, path || old[0]);
    own.focused = nodeAt(root, focus || path || old[1]);
    own.lay();
    if (isUp) {
      holder.scrollTop = height;
    }
  };
  own.restyle = () => {
    patterns = {};
    own.draw();
  };
  own.drawn = () => rows.flat();

  const nodeUnder = (event) => {
    const place = spacer.getBoundingClientRect(), x = event.clientX - place.left, y = event.clientY - place.top;
    const level = Math.floor((isUp ? height - y : y) / ROW);
    const box = (rows[level] || []).find((b) => x >= b.x && x < b.x + b.w);
    return box && !box.rest ? box.node : null;
  };
  const beside = (by) => {
    const list = own.focused.above ? own.focused.above.below.filter((node) => boxes.has(node)) : [];
    own.focusOn(list[list.indexOf(own.focused) + by]);
  };
  const inward = () => own.focusOn((own.focused.below || []).find((node) => boxes.has(node)));
  const outward = () => own.focusOn(own.focused.above);
  const keys = {
    ArrowUp: isUp ? inward : outward,
    ArrowDown: isUp ? outward : inward,
    ArrowLeft: () => beside(-1),
    ArrowRight: () => beside(1),
    Enter: () => own.zoomTo(own.focused),
    ' ': () => own.zoomTo(own.focused),
    Home: () => own.zoomTo(own.root),
    Backspace: () => own.zoomTo(own.zoomed.above || own.root),
  };
  holder.addEventListener('keydown', (event) => {
    if (keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      keys[event.key]();
      event.preventDefault();
    }
  });
  holder.addEventListener('click', (event) => {
    const node = nodeUnder(event);
    hooks.pointed(null);
    if (node) {
      own.zoomTo(node);
    }
  });
  holder.addEventListener('mousemove', (event) => {
    const node = nodeUnder(event);
    holder.style.cursor = node ? 'pointer' : '';
    hooks.pointed(node, event);
  });
  holder.addEventListener('mouseleave', () => hooks.pointed(null));
  holder.addEventListener('scroll', own.draw, { passive: true });
  ['focus', 'blur'].forEach((kind) => holder.addEventListener(kind, () => {
    own.draw();
    if (own.root) {
      hooks.told(own.focused, own);
    }
  }));
  new ResizeObserver(own.lay).observe(holder);
  return own;
};
