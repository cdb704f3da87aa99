<?php
require 'stop.inc';
class Order
{
    static function compare($a, $b) { return array_reduce([$a, $b], [new self, 'add'], 0); }
    function add($sum, $n) { array_walk($n, 'walk', $this); return $sum; }
}
function walk(&$value, $key, $order)
{
    preg_replace_callback('/b+/', function ($found) {
        return call_user_func_array('last', [[1, 2], 'more']);
    }, 'abba');
}
function last($list, $more) { return array_filter($list, function ($n) { return iterator_apply($i = new ArrayIterator([1]), 'stop', [$i]); }); }
$list = [[2], [1]];
usort($list, 'Order::compare');
