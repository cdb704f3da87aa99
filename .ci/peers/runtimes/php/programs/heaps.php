<?php
require 'stop.inc';
class Least extends SplMinHeap
{
    protected function compare($a, $b): int { static $n = 0; if (++$n == 2) { stop(); } return $b - $a; }
}
class Ordered
{
    private $heap;
    function __construct() { $this->heap = new Least; }
    function add(int ...$list): void { foreach ($list as $n) { $this->heap->insert($n); } }
}
(new Ordered)->add(5, 4, 3);
