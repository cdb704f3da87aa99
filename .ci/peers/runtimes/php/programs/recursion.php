<?php
require 'stop.inc';
function down($n)
{
    if ($n == 0) {
        return stop();
    }
    return $n % 2
        ? down($n - 1) + 1
        : Deep::further($n - 1);
}
class Deep
{
    static function further($n)
    {
        return down($n);
    }
}
down(10000);
