// SPDX-License-Identifier: Apache-2.0
'use strict';
const { through } = require(process.env.ADDON);
function inside() { die(); }
function callback() { return through(inside) + 1; }
through(callback);
