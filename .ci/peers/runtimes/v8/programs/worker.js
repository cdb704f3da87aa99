// SPDX-License-Identifier: Apache-2.0
'use strict';
const { Worker, isMainThread } = require('worker_threads');
function work(n) { return n > 3 ? die() : work(n + 1); }
if (isMainThread) new Worker(__filename);
else { require('./prelude.js'); work(0); }
