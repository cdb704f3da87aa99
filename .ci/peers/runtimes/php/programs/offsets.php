<?php
require 'stop.inc';
class Handler
{
    function handle($number, $text) { return stop($text); }
}
set_error_handler([new Handler, 'handle'], E_ALL);
class Reads
{
    function __get($name) { return $this->list()['no such key']; }
    function list() { return [1]; }
}
function property($object) { return $object->missing; }
property(new Reads);
