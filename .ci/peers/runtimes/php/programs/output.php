<?php
require 'stop.inc';
ob_start(function ($text) { return strtoupper(filter($text)); });
function filter($text) { stop(); return $text; }
function page() { echo 'some text'; ob_end_flush(); }
page();
