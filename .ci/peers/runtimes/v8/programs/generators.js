// SPDX-License-Identifier: Apache-2.0
'use strict';
function* numbers(n) { for (let i = 0; i < n; i++) { if (i === 3) die(); yield i; } }
function* wrap(it) { yield* it; }
function sum() { let s = 0; for (const x of wrap(numbers(9))) s += x; return s; }
Reflect.apply(sum, null, []);
