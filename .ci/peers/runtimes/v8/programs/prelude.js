// SPDX-License-Identifier: Apache-2.0
// die writes the frames that V8 itself knows, and ends the process.
'use strict';
const fs = require('fs');
const { isMainThread } = require('worker_threads');
Error.stackTraceLimit = Infinity;
function sites() {
  const saved = Error.prepareStackTrace;
  Error.prepareStackTrace = (_, list) => list;
  const list = new Error().stack;
  Error.prepareStackTrace = saved;
  return list.slice(1).filter((s) => !(s.isAsync && s.isAsync()) && !(s.isPromiseAll && s.isPromiseAll()));
}
function text(list) {
  return list.map((s) => JSON.stringify([s.getFunctionName() || '<anonymous>', s.getScriptNameOrSourceURL() || '',
    s.getLineNumber() || 0, s.getColumnNumber() || 0])).join('\n') + '\n';
}
globalThis.die = function die() {
  fs.writeFileSync(process.env.SITES, text(sites()));
  if (isMainThread) process.abort();
  process.kill(process.pid, 'SIGABRT');
  for (;;);
};
globalThis.keepSites = function keepSites() {
  text(sites()); // V8 makes the tables of positions now
};
