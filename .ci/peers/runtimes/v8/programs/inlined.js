// SPDX-License-Identifier: Apache-2.0
'use strict';
// The call that ends the process is not known to the functions: nothing is given up before it.
const state = { left: 3e6, act() { if (--this.left < 0) die(); } };
function c(x) { state.act(); return x + 1; }
function b(x) { return c(x) + c(x + 1); }
function a(x) { return b(x) + b(x + 2); }
class Box { constructor(x) { this.v = a(x); } get value() { return this.v; } }
function run(n) { let s = 0; for (let i = 0; i < n; i++) s += new Box(i).value; return s; }
function each(n) { let s = 0; [1, 2, 3].forEach((k) => { s += run(n) * k; }); return s; }
for (let i = 0; ; i++) each(500);
