<?php
// Writes the trace of the place where it throws an exception, in which gdb ends it.
class Wrong extends RuntimeException {}
class Thrower
{
    function throws($n)
    {
        $lines = [['Thrower->throws', 9], ['{main}', 13]];
        throw new Wrong("the number is $n", 4, new LogicException('before' . trace($lines)));
    }
}
function trace($lines) { return (string) file_put_contents('trace', implode('', array_map(function ($l) { return "$l[0]\t" . __FILE__ . "\t$l[1]\n"; }, $lines))); }
(new Thrower)->throws(7);
