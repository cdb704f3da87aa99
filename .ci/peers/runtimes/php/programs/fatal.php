<?php
require 'stop.inc';
register_shutdown_function(function () { stop(); });
function broken() { no_such_function(); }
broken();
