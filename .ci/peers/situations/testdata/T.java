// SPDX-License-Identifier: Apache-2.0
public class T {
	static long fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
	public static void main(String[] args) {
		long sum = 0;
		for (long end = System.currentTimeMillis() + 3000; System.currentTimeMillis() < end;)
			sum += fib(25);
		System.out.println(sum > 0);
	}
}
