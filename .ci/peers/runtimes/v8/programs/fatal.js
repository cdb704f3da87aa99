// SPDX-License-Identifier: Apache-2.0
'use strict';
function thrower(o) { return o.missing.member; }
function caller() { try { return thrower({}); } finally { caller.done = true; } }
process.on('exit', () => {});
setImmediate(function later() { caller(); });
