%% SPDX-License-Identifier: Apache-2.0
-module(work).
-export([main/0]).
fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
main() -> loop(erlang:monotonic_time(millisecond) + 3000), halt().
loop(End) ->
    fib(22),
    case erlang:monotonic_time(millisecond) < End of true -> loop(End); false -> ok end.
