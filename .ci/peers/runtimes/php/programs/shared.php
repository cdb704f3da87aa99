<?php
require 'stop.inc';
function source() { yield 1; yield 2; stop(); yield 3; }
function user($g) { yield from $g; }
$g = source();
$a = user($g);
$b = user($a);
$c = user($g);
$b->current();
$c->current();
$c->next();
$b->next();
$c->next();
