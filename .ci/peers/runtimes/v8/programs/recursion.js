// SPDX-License-Identifier: Apache-2.0
'use strict';
function down(n) { return n === 0 ? die() : 1 + down(n - 1); }
down(5000);
