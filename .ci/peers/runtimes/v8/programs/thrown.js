// SPDX-License-Identifier: Apache-2.0
'use strict';
// An exception of a class of the program, whose objects have their properties in a table.
class AppError extends TypeError { constructor(text, extra) { super(text); this.extra = extra; delete this.extra; } }
AppError.prototype.name = 'AppError';
function build(o) { throw new AppError(`не найдено ${o}`, 5); }
const build2 = (o) => build(o + 1);
setImmediate(function later() { build2(6); });
