<?php
require 'stop.inc';
set_error_handler(function ($number, $text) {
    handle($text);
    return true;
});
function handle($text) { stop($text); }
function undefined()
{
    $b = 2;
    return $a
        + $b;
}
function calls() { return array_map('undefined', [1]); }
calls();
