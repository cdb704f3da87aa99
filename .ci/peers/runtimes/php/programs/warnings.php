<?php
require 'stop.inc';
set_error_handler(function ($number, $text) { stop($text); });
function conversion($list)
{
    return "text of $list";
}
array_map(function ($x) { return conversion([$x]); }, [1]);
