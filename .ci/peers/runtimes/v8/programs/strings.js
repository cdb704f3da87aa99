// SPDX-License-Identifier: Apache-2.0
'use strict';
// Names of one and two bytes, made of others, and scripts with names and offsets of their own.
const vm = require('vm');
const name = 'gr\u00fc\u00df' + '\u4e16\u754c'.repeat(3) + 'x'.repeat(20);
const f = vm.runInThisContext(`(function ${name}(g) {\r\n  return g();\u2028 })`, { filename: 'dir/' + name + '.js', lineOffset: 41, columnOffset: 7 });
const g = vm.runInThisContext('(function(h) { return h(); })\n//# sourceURL=named-by-the-source.js');
class Named { static ['na' + 'me'] = 'own name'; }
const anonymous = (() => () => f(() => die()))();
g(anonymous, Named);
