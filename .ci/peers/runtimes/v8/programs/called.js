// SPDX-License-Identifier: Apache-2.0
'use strict';
// Functions that are inlined call one that is too large to be: the optimised code stays on the stack.
let calls = 0, stop = Infinity;
const hook = new Function('next', 'k', `${'k = (k * 3 + 1) & 1023; '.repeat(300)}return next(k);`);
function count(k) { if (++calls > stop) die(); return k & 1; }
function third(k) { return hook(count, k) + 1; }
function second(k) { return third(k) * 2; }
class Box { constructor(k) { this.v = second(k); } get twice() { return third(this.v) * 2; } }
function first(k) { return new Box(k).twice + [k].map((x) => second(x))[0]; }
function each(n) { let s = 0; for (let i = 0; i < n; i++) s += first(i); return s; }
keepSites();
each(20000); each(20000); stop = calls + 100000; each(60000);
