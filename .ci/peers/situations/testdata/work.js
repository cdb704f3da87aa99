// SPDX-License-Identifier: Apache-2.0
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
for (const end = Date.now() + 3000; Date.now() < end;) fib(25);
