// SPDX-License-Identifier: Apache-2.0

// Colours of boxes: by the kind of code, or by the change from another profile.

// Kinds, in the order of their numbers, with the hues that they have.
const kinds = [
  { title: 'thread', from: 262, to: 282 },
  { title: 'CPU', from: 22, to: 62 },
  { title: 'kernel', from: 330, to: 350 },
  { title: 'GPU', from: 170, to: 195 },
  { title: 'JIT', from: 85, to: 130 },
  { title: 'managed', from: 208, to: 232 },
  { title: 'cut short', from: 0, to: 0 },
];
const GUESS = kinds.length; // of the legend

// hashOf is a number from 0 to 1 that a name always has.
const hashOf = (name) => {
  let hash = 2166136261; // FNV-1a
  for (let i = 0; i < name.length; i++) {
    hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
  }
  return (hash >>> 0) / 4294967296;
};

const makeColors = (data) => {
  let palette = null, known = [];
  const saturation = (kind) => kind === GAP ? '0%' : palette.vivid;

  // Functions of one module have hues near one another, and differ in how light they are.
  const ofFunction = (f) => {
    const kind = kinds[data.kinds[f]];
    const own = hashOf(data.names[f]), shared = data.modules[f] ? hashOf(data.modules[f]) : own;
    const hue = kind.from + (0.6 * shared + 0.4 * own) * (kind.to - kind.from);
    const light = parseFloat(palette.light) + ((own * 16) % 1 - 0.5) * 10;
    return `hsl(${hue} ${saturation(data.kinds[f])} ${light}%)`;
  };
  const ofKind = (key) => {
    if (key < 0) {
      return `hsl(220 45% ${palette.light})`;
    }
    const f = key >> 1;
    known[f] = known[f] || ofFunction(f);
    return known[f];
  };
  const ofKinds = () => kinds.map((kind, i) => `hsl(${(kind.from + kind.to) / 2} ${saturation(i)} ${palette.light})`);

  // ofChange is red for more and blue for less, the stronger the larger the change is beside the weight.
  const ofChange = (node) => {
    const change = (node.total - node.base) / Math.max(node.total, node.base, 1);
    return `hsl(${change > 0 ? 8 : 215} ${Math.round(Math.abs(change) * 85)}% ${palette.light})`;
  };

  // read reads what differs between light and dark.
  const read = () => {
    const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim();
    known = [];
    palette = {
      ink: of('--ink'), text: of('--text'), back: of('--back'), line: of('--line'), dim: of('--dim'), accent: of('--accent'), hit: '#ffd43b',
      light: of('--box'), vivid: of('--vivid'),
    };
  };
  return { palette: () => palette, ofKind, ofKinds, ofChange, read };
};
