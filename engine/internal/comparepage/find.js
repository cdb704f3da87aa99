// SPDX-License-Identifier: Apache-2.0

// Search and filter: which targets are shown, and which functions are found.

// numbersOf reads "0-5,7": whether a number is in it; null: it is no such text.
const numbersOf = (text) => {
  if (!/^\d+(-\d+)?(,\d+(-\d+)?)*$/.test(text)) {
    return null;
  }
  const ranges = text.split(',').map((range) => range.split('-').map(Number));
  return (value) => /^\d+$/.test(value) && ranges.some(([from, to = from]) => Number(value) >= from && Number(value) <= to);
};

// valueTest is a test of a label's value: by numbers, or by a part of it.
const valueTest = (text) => {
  const small = text.toLowerCase();
  return numbersOf(small) || ((value) => value.toLowerCase().includes(small));
};

// termsOf splits a search into terms: a label with a value, a number, or a word.
const termsOf = (text, data) => {
  const words = text.trim().toLowerCase().split(/\s+/).filter(Boolean), terms = [];
  const labelOf = (name) => data.labels.find((label) => label.name.toLowerCase() === name);
  for (let i = 0; i < words.length; i++) {
    const [name, value] = words[i].split(/=(.*)/s);
    if (value && labelOf(name)) {
      terms.push({ label: labelOf(name), test: valueTest(value) });
    } else if (labelOf(words[i]) && i + 1 < words.length) {
      terms.push({ label: labelOf(words[i]), test: valueTest(words[++i]) });
    } else {
      terms.push({ word: words[i], isNumber: /^\d+$/.test(words[i]) });
    }
  }
  return terms;
};

// makeFinder finds targets and functions. A word is in a function, a module, a role, a fact, a path or a value of a label; a number
// is a value, a process or a number in a path.
const makeFinder = (data) => {
  const { texts, targets, labels, classes, functions, frames, threads } = data;
  let small = null;
  const smallTexts = () => small = small || texts.map((text) => text.toLowerCase());
  const hitsOf = (test) => Uint8Array.from(smallTexts(), (text) => text !== '' && test(text) ? 1 : 0);

  const ofLabel = ({ label, test }, isIn) => {
    const hits = hitsOf(test);
    return (i) => isIn[i] && hits[label.value[i]];
  };
  const ofNumber = ({ word }, isIn) => {
    const own = Number(word), number = new RegExp(`(^|\\D)0*${own}(\\D|$)`);
    const values = hitsOf((text) => /^\d+$/.test(text) && Number(text) === own), paths = hitsOf((text) => number.test(text));
    return (i) => isIn[i] && (targets.pid[i] === own || paths[targets.path[i]] || labels.some((label) => values[label.value[i]]));
  };
  const classesWith = (hits, isFound) => {
    const isHit = Uint8Array.from({ length: frames.count }, (_, f) => hits[frames.name[f]] | hits[frames.short[f]] | hits[frames.module[f]]);
    const below = new Uint8Array(functions.count + 1);
    for (let node = 1; node < below.length; node++) {
      const is = isHit[functions.frame[node]];
      isFound[node] |= is;
      below[node] = is | below[functions.parent[node]];
    }
    return Uint8Array.from(classes, ({ i, unread, facts }) => {
      for (let t = threads.from[i]; t < threads.from[i + 1]; t++) {
        if (below[threads.node[t]] || hits[threads.role[t]]) {
          return 1;
        }
      }
      return [unread, ...facts].some((text) => text.toLowerCase().includes(hits.word)) ? 1 : 0;
    });
  };
  const ofWord = ({ word }, isIn, isFound) => {
    const hits = Object.assign(hitsOf((text) => text.includes(word)), { word });
    const ofClass = classesWith(hits, isFound);
    return (i) => isIn[i] && (ofClass[targets.inClass[i]] || hits[targets.path[i]] || labels.some((label) => hits[label.value[i]]));
  };

  // find returns which targets are in (null: all), and which nodes of functions have a word.
  const find = (text, label, value) => {
    const terms = termsOf(text, data);
    if (label && value.trim()) {
      terms.push({ label, test: valueTest(value.trim()) });
    }
    if (terms.length === 0) {
      return { isIn: null, isFound: null };
    }
    const isIn = new Uint8Array(targets.count + 1).fill(1, 1), isFound = new Uint8Array(functions.count + 1);
    for (const term of terms) {
      const test = term.label ? ofLabel(term, isIn) : term.isNumber ? ofNumber(term, isIn) : ofWord(term, isIn, isFound);
      for (let i = 1; i < isIn.length; i++) {
        isIn[i] = test(i) ? 1 : 0;
      }
    }
    return { isIn, isFound };
  };
  return find;
};
