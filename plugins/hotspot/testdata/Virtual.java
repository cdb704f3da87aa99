/* SPDX-License-Identifier: Apache-2.0 */

import java.util.concurrent.locks.LockSupport;

/** Has virtual threads that wait, one that executes, and says so. */
public class Virtual {
	static volatile boolean ready;

	static void park(int n) {
		if (n == 0) {
			while (true) LockSupport.park();
		}
		park(n - 1);
	}

	public static void main(String[] args) throws Exception {
		int rounds = Integer.parseInt(args[0]);
		for (int i = 0; i < rounds; i++) {
			int n = i % 7;
			Thread t = Thread.ofVirtual().start(() -> sleep(n));
			if (i % 100 == 0) t.join();
		}
		Thread.sleep(500);
		for (int i = 0; i < 3; i++) {
			int n = i;
			Thread.ofVirtual().name("parked " + n).start(() -> park(n + 2));
		}
		Thread.ofVirtual().name("sleeps").start(() -> sleep(1 << 30));
		Thread.ofVirtual().name("runs").start(() -> {
			ready = true;
			while (ready) Thread.onSpinWait();
		});
		var executor = java.util.concurrent.Executors.newVirtualThreadPerTaskExecutor();
		executor.submit(() -> park(1));
		while (!ready) Thread.sleep(10);
		Thread.sleep(200);
		System.out.println("ready");
		LockSupport.park(Virtual.class);
	}

	static void sleep(int n) {
		try { Thread.sleep(n); } catch (InterruptedException e) { throw new IllegalStateException(e); }
	}
}
