<?php
// Writes the trace of the loop, which calls nothing, and never ends.
function loop($n)
{
    file_put_contents(getenv('TRACE'), "loop\t" . __FILE__ . "\t7\n{main}\t" . __FILE__ . "\t10\n");
    $i = 0;
    while (true) { ++$i; --$i; }
}

loop(5);
