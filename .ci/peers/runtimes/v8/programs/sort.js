// SPDX-License-Identifier: Apache-2.0
'use strict';
const list = [3, 1, 2];
const proxy = new Proxy({}, { get(_, name) { return name === 'x' ? die() : 1; } });
function compare(a, b) { return a === 2 || b === 2 ? proxy.x : a - b; }
function replace() { return 'abc'.replace(/b/, () => list.sort(compare).length); }
JSON.stringify({ toJSON() { return replace(); } });
