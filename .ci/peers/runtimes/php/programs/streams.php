<?php
require 'stop.inc';
class Memory
{
    public $context;
    function stream_open($path, $mode, $options, &$opened) { return true; }
    function stream_stat() { return []; }
    function stream_read($count) { stop(); return ''; }
    function stream_eof() { return true; }
    function stream_set_option($option, $first, $second) { return false; }
}
stream_wrapper_register('memory', 'Memory');
function read() { return file_get_contents('memory://x'); }
read();
