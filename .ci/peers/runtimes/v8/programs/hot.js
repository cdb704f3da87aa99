// SPDX-License-Identifier: Apache-2.0
'use strict';
let stop = Infinity, calls = 0;
function leaf(a) { calls++; if (calls > stop) die(); return a + 1; }
function mid(a) { return leaf(a) * 2; }
const square = (a) => mid(a) * mid(a + 1);
function loop(a) { let s = 0; for (let i = 0; i < 10; i++) s += square(a + i); return s; }
function driver(n) { let s = 0; for (let i = 0; i < n; i++) s += loop(i); return s; }
keepSites();
driver(60000); stop = calls + 200000; driver(60000);
