<?php
// SPDX-License-Identifier: Apache-2.0
function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); }
for ($end = microtime(true) + 3; microtime(true) < $end;) fib(20);
