import java.lang.reflect.Field;
import java.util.Arrays;

/* Crashes below interpreted and compiled methods, some of which keep values in every register. The machine's own
 * trace says which frames there are. */
public class Frames {
	static long sink;
	static sun.misc.Unsafe unsafe;

	static long even(long a, long b, long c, long d, long e, long f, int n, boolean stop) {
		long g = a * 31 + b, h = b * 17 + c, i = c * 13 + d, j = d * 11 + e, k = e * 7 + f, l = f * 5 + a;
		if (n == 0) {
			if (stop) unsafe.putInt(0L, 1);
			return a + b;
		}
		return odd(b, c, d, e, f, g, n - 1, stop) + g + h + i + j + k + l + a + b + c + d + e + f;
	}

	static long odd(long a, long b, long c, long d, long e, long f, int n, boolean stop) {
		long g = a * 3 + b, h = b * 7 + c;
		Integer x = n;
		String y = "v" + (n & 7);
		if (n == 0) {
			if (stop) unsafe.putInt(0L, 1);
			return a - b;
		}
		return even(g, h, c, d, e, f, n - 1, stop) + g * h + x + y.length();
	}

	interface Step { long step(int n, boolean stop); }

	static class Add implements Step {
		public long step(int n, boolean stop) { return n == 0 ? even(1, 2, 3, 4, 5, 6, 20, stop) : new Times().step(n - 1, stop) + 1; }
	}

	static class Times implements Step {
		public long step(int n, boolean stop) { return n == 0 ? odd(1, 2, 3, 4, 5, 6, 20, stop) : new Add().step(n - 1, stop) * 3; }
	}

	static long sorted(boolean stop) {
		Integer[] list = new Integer[64];
		for (int i = 0; i < 64; i++) list[i] = i * 37 % 64;
		int[] count = {0};
		Arrays.sort(list, (x, y) -> {
			if (stop && ++count[0] > 100) sink += new Add().step(9, true);
			return Integer.compare(x, y);
		});
		return list[0];
	}

	public static void main(String[] args) throws Exception {
		Field f = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
		f.setAccessible(true);
		unsafe = (sun.misc.Unsafe) f.get(null);
		for (int i = 0; i < Integer.parseInt(args[0]); i++) {
			sink += even(i, 2, 3, 4, 5, 6, 20, false) + new Add().step(i % 10, false);
			if (i % 10 == 0) sink += sorted(false);
		}
		sorted(true);
	}
}
