<?php
// Never ends. A line that executes says in which function it is, and what it calls.
// builtin array_map: Walker::{closure} strrev
// builtin usort: compare
// builtin strrev:
// builtin str_repeat:
// builtin count:
// builtin preg_replace_callback: found
class Walker
{
    private $depth = 0;
    function down($n) // Walker->down:
    {
        $i = $n * 3; // Walker->down:
        if ($n > 0) { // Walker->down:
            $this->down($n - 1); // Walker->down: Walker->down
            self::side($n); // Walker->down: Walker::side
        }
        foreach ($this->numbers($n) as $v) { // Walker->down: Walker->numbers
            $i += add($v, $i); // Walker->down: add
        }
        return $i; // Walker->down:
    }
    static function side($n) // Walker::side:
    {
        $list = array_map(static function ($x) { // Walker::side: array_map
            $x++; // Walker::{closure}:
            return add($x, 2); // Walker::{closure}: add
        }, [1, 2, 3]); // Walker::side: array_map
        usort($list, 'compare'); // Walker::side: usort
        array_map('strrev', ['abc', str_repeat('xyz', 50)]); // Walker::side: array_map str_repeat
        return count($list); // Walker::side: count
    }
    function numbers($n) // Walker->numbers:
    {
        for ($i = 0; $i < $n; $i++) { // Walker->numbers:
            yield $i; // Walker->numbers:
        }
        yield from more($n); // Walker->numbers: more
    } // Walker->numbers:
    function __destruct() // Walker->__destruct:
    {
        add(1, 2); // Walker->__destruct: add
    } // Walker->__destruct:
}
function more($n) // more:
{
    yield add($n, 1); // more: add
    yield preg_replace_callback('/b/', 'found', 'abba'); // more: preg_replace_callback
} // more:
function found($match) // found:
{
    return add(1, 1); // found: add
}
function add($a, $b) // add:
{
    for ($i = 0; $i < 5; $i++) { // add:
        $a = (int) $a + 1; // add:
    }
    return $a + (int) $b; // add:
}
function compare($a, $b) // compare:
{
    return $a <=> $b; // compare:
}
function make($n) // make:
{
    $walker = new Walker; // make:
    $walker->down($n); // make: Walker->down
    $walker = null; // make: Walker->__destruct
    return $n; // make:
}
while (true) { // {main}:
    make(6); // {main}: make
}
