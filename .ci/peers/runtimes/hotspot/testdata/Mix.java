/* SPDX-License-Identifier: Apache-2.0 */
import java.util.*;
import java.util.concurrent.locks.LockSupport;

/** Has threads in all kinds of frames, says so, and waits. */
public class Mix {
	static final Object lock = new Object(), other = new Object(), never = new Object();
	static long sink;

	static native void call(Runnable r);
	static native void crash();

	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

	static void deep(int n, Runnable end) {
		if (n == 0) end.run();
		else deep(n - 1, end);
		sink += n;
	}

	interface Shape { long area(int depth, Runnable end); }
	static class Square implements Shape {
		public long area(int d, Runnable end) { return d == 0 ? stop(end) : new Circle().area(d - 1, end) + 1; }
	}
	static class Circle implements Shape {
		public long area(int d, Runnable end) { return d == 0 ? stop(end) : new Square().area(d - 1, end) * 3; }
	}
	static long stop(Runnable end) {
		end.run();
		return 5;
	}

	static void sorted(Runnable end) {
		Integer[] list = new Integer[64];
		for (int i = 0; i < 64; i++) list[i] = i * 37 % 64;
		int[] count = {0};
		Arrays.sort(list, (x, y) -> {
			if (++count[0] == 100) end.run();
			return Integer.compare(x, y);
		});
	}

	static void await(Object o) {
		synchronized (o) {
			try { o.wait(); } catch (InterruptedException e) { throw new IllegalStateException(e); }
		}
	}

	static void start(String name, Runnable r) {
		Thread t = new Thread(r, name);
		t.setDaemon(true);
		t.start();
	}

	public static void main(String[] args) throws Exception {
		int rounds = Integer.parseInt(args[0]);
		System.load(args[1]);
		boolean crashes = args.length > 2;
		Runnable nothing = () -> sink++;
		for (int i = 0; i < rounds; i++) {
			deep(20, nothing);
			sink += new Square().area(i % 10, nothing);
			if (i % 10 == 0) sorted(nothing);
			fib(5);
			if (i % 10 == 0) call(nothing);
		}
		if (crashes) {
			Runnable end = () -> call(() -> sorted(() -> new Square().area(9, () -> deep(9, Mix::crash))));
			end.run();
		}
		start("deep wait", () -> deep(20, () -> await(never)));
		start("shapes sleep", () -> new Square().area(9, () -> {
			try { Thread.sleep(1 << 30); } catch (InterruptedException e) { sink++; }
		}));
		start("sorted park", () -> sorted(() -> { while (true) LockSupport.park(lock); }));
		start("holder", () -> { synchronized (lock) { await(never); } });
		Thread.sleep(200);
		start("blocked", () -> { synchronized (lock) { sink++; } });
		start("reflect", () -> {
			try { Mix.class.getDeclaredMethod("await", Object.class).invoke(null, never); } catch (Exception e) { sink++; }
		});
		start("stream", () -> Arrays.asList(1, 2, 3).stream().map(x -> x + 1).forEach(x -> await(never)));
		start("read", () -> { try { System.in.read(); } catch (Exception e) { sink++; } });
		start("grüße \u4e16", () -> await(never));
		start("native", () -> deep(5, () -> call(() -> sorted(() -> call(() -> await(never))))));
		Object a = new Object(), b = new Object();
		start("dead 1", () -> { synchronized (a) { pause(); synchronized (b) { sink++; } } });
		start("dead 2", () -> { synchronized (b) { pause(); synchronized (a) { sink++; } } });
		Thread.sleep(500);
		System.out.println("ready");
		await(never);
	}

	static void pause() {
		try { Thread.sleep(100); } catch (InterruptedException e) { sink++; }
	}
}
