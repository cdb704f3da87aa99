<?php
require 'stop.inc';
function values() { yield 1; yield stop(); }
function spread(...$list) { return count($list); }
function listed() { return [...values()]; }
function arrays() { [$a, [$b]] = [spread(...values()), listed()]; }
arrays();
