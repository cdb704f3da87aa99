// SPDX-License-Identifier: Apache-2.0
'use strict';

// unwinddFlameGraph draws pprof's flame graph with colours by what executed: a range of
// hues for each, and in it another one for each function. stacks and nodes are what
// pprof's stackViewer takes.
function unwinddFlameGraph(stacks, nodes) {
  // Names end with a mark, behind which there are lines where pprof counts by these.
  const kinds = [
    {title: 'process', from: 265, to: 285, has: (s) => s.FileName === 'process'},
    {title: 'GPU', from: 165, to: 205, has: (s) => /_\[G\](:\d+)*$/.test(s.FullName)},
    {title: 'kernel', from: 325, to: 350, has: (s) => /_\[k\](:\d+)*$/.test(s.FullName)},
    {title: 'CPU', from: 36, to: 62, has: () => true},
  ];

  // Where pprof counts by files there are no functions, and its own colours stay.
  const isFile = (s) => s.FileName !== '' && s.FullName.startsWith(s.FileName);

  // share is a number from 0 to 1 that a name always has.
  const share = (name) => {
    let hash = 2166136261; // FNV-1a
    for (let i = 0; i < name.length; i++) {
      hash = Math.imul(hash ^ name.charCodeAt(i), 16777619);
    }
    return (hash >>> 0) / 4294967296;
  };

  // pprof turns its colour n into the hue (n+1)*phi of a circle.
  const color = (degrees) => degrees / 360 / 1.618033988 - 1;

  const met = new Set();
  stacks.Sources[0].Color = color(kinds[0].from); // the root
  for (const source of stacks.Sources.slice(1)) { // behind the root
    if (isFile(source)) continue;
    // A module, of which pprof would show what is behind a dot where room is short.
    if (source.FullName.startsWith('[')) source.Display = [source.FullName];
    const kind = kinds.find((k) => k.has(source));
    met.add(kind);
    source.Color = color(kind.from + share(source.FullName) * (kind.to - kind.from));
  }
  stackViewer(stacks, nodes);

  if (met.size < 2) return; // there is nothing to tell apart
  const legend = document.createElement('div');
  legend.id = 'unwindd-legend';
  for (const kind of kinds.filter((k) => met.has(k)).reverse()) {
    const entry = document.createElement('span');
    const sample = document.createElement('i');
    sample.style.background = `hsl(${(kind.from + kind.to) / 2}deg 50% 80%)`;
    entry.append(sample, kind.title);
    legend.append(entry);
  }
  document.getElementById('stack-holder').before(legend);
}
