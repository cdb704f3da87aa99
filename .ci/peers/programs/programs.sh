# SPDX-License-Identifier: Apache-2.0
# Sourced by the program beside it: each function starts a program of Debian in the
# current directory, and has it leave a core there. core_of ends with what the program
# wrote about its own stack, where it writes something, in the file trace.

# core_of PID SIGNAL: the process gets the signal once it has run for a while.
core_of() {
	sleep "${3:-2}"
	kill -"$2" "$1"
	wait "$1" 2>/dev/null || true
}

start_perl() {
	perl -e 'sub f { my $n = shift; $n ? f($n - 1) + 1 : do { 1 while 1 } } f(40)' & core_of $! ABRT
}
start_python3() {
	cat >a.py <<-'PY'
		import faulthandler, threading, re
		faulthandler.enable(open("trace", "w"))
		def f(n):
		    if n: return sorted([n, n - 1], key=lambda k: f(n - 1) if k == n else k)
		    while True: re.sub("(a|b)*c", lambda m: "", "ab" * 14 + "d")
		for i in range(4): threading.Thread(target=f, args=(i,), daemon=True).start()
		f(20)
	PY
	/usr/bin/python3 a.py & core_of $! SEGV
}
start_ruby() {
	ruby -e 'def f(n) = n == 0 ? loop { [3, 1, 2].sort_by { |x| -x } } : [1].each { f(n - 1) }
	Thread.new { sleep }; f(30)' >/dev/null 2>trace & core_of $! SEGV
}
start_node() {
	cat >a.js <<-'JS'
		function f(n) { if (n) return f(n - 1) + 1; for (;;) [3, 1, 2].map(x => x * 2).sort((a, b) => b - a) }
		setTimeout(() => f(50), 10)
	JS
	node a.js & core_of $! ABRT
}
java_core() {
	cat >J.java <<-'JAVA'
		public class J {
		    static long hot(long n) { long s = 0; for (long i = 0; i < n; i++) s += i % 7 * Long.toString(i % 3).length(); return s; }
		    static int r(int n) { if (n == 0) for (;;) hot(100000); return r(n - 1) + 1; }
		    public static void main(String[] a) throws Exception {
		        for (int i = 0; i < 20000; i++) hot(1000);
		        for (int i = 0; i < 4; i++) { int depth = 10 * i; Thread t = new Thread(() -> r(depth)); t.setDaemon(true); t.start(); }
		        r(300);
		    }
		}
	JAVA
	javac -d . J.java
	java "$@" -Xmx64m -XX:-OmitStackTraceInFastThrow -XX:ErrorFile="$PWD/trace" -cp . J >/dev/null 2>&1 & core_of $! SEGV 6
}
start_java_int() { java_core -Xint; }
start_java_c1() { java_core -XX:TieredStopAtLevel=1; }
start_java_c2() { java_core; }
start_sbcl() {
	cat >a.lisp <<-'LISP'
		(defun f (n) (if (zerop n) (loop (sort (list 3 1 2) #'<)) (1+ (f (1- n)))))
		(f 50)
	LISP
	sbcl --script a.lisp & core_of $! XCPU
}
start_erlang() {
	erl -noshell -eval 'F = fun G(0) -> (fun L() -> lists:sort([3,1,2]), L() end)(); G(N) -> G(N - 1) + 1 end, F(100).' & core_of $! ABRT
}
start_ghc() {
	cat >G.hs <<-'HS'
		import Foreign
		f :: Int -> IO Int
		f 0 = poke nullPtr (1 :: Int) >> return 0
		f n = (+ 1) <$> f (n - 1)
		main = f 30 >>= print
	HS
	ghc -O G.hs >/dev/null
	./G || true
}
start_php() {
	php -r 'function f($n) { if ($n) return array_map(fn($k) => f($n - 1), [1]); while (true) { $a = [3, 1, 2]; usort($a, fn($x, $y) => $x - $y); } } f(30);' & core_of $! ABRT
}
start_postgres() {
	local bin
	bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
	chmod 777 .
	runuser -u postgres -- sh -c "ulimit -c unlimited; exec '$bin/initdb' -D data" >/dev/null
	runuser -u postgres -- sh -c "ulimit -c unlimited; cd data; exec '$bin/postgres' -D . -p 55432 -k '$PWD' -c listen_addresses=" >/dev/null 2>&1 &
	sleep 3
	runuser -u postgres -- psql -h "$PWD" -p 55432 -c 'select count(*) from generate_series(1,1000000000) a, generate_series(1,1000) b' >/dev/null 2>&1 &
	sleep 2
	pkill -SEGV -u postgres -f '^postgres: postgres postgres.*SELECT' || true
	sleep 2
	"$bin/../bin/pg_ctl" --version >/dev/null
	runuser -u postgres -- "$bin/pg_ctl" -D data stop -m immediate >/dev/null 2>&1 || true
	mv data/core* . 2>/dev/null || true
}
start_nginx() {
	printf 'daemon off; master_process off; error_log stderr; pid nginx.pid; events {} http { access_log off; server { listen 127.0.0.1:58080; } }' >nginx.conf
	/usr/sbin/nginx -p "$PWD" -c nginx.conf 2>/dev/null & core_of $! ABRT
}
start_redis() {
	redis-server --port 0 --unixsocket "$PWD/s" --save '' --logfile trace --dir "$PWD" & core_of $! SEGV
}
start_emacs() {
	emacs --batch --eval '(progn (defun f (n) (if (= n 0) (while t (sort (list 3 1 2) (lambda (a b) (< a b)))) (1+ (f (1- n))))) (f 30))' 2>trace & core_of $! SEGV
}
