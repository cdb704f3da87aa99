// SPDX-License-Identifier: Apache-2.0

// Functions with frames of several kinds, whose call frame information is to be right at calls
// alone.

int other(long *p, long n);

int leaf(int a) { return a * 3 + 1; }

int small(long n) { return other(&n, n) + 1; }

int many(long *p, long n) {
	int sum = 0;
	for (long i = 0; i < n; i++) {
		sum += other(p + i, n) * leaf(sum);
		if (sum > 100)
			return other(p, sum);
		if (__builtin_expect(sum < -100, 0)) {
			other(p, -1);
			other(p, -2);
			__builtin_trap();
		}
	}
	return sum;
}

long large(long n) {
	long room[600];
	other(room, n);
	return room[n & 511];
}

long dynamic(long n) {
	long room[n];
	other(room, n);
	return room[0];
}

int tail(long *p, long n) {
	if (other(p, n))
		return small(n);
	return other(p, 1);
}

__attribute__((cold)) void rare(long *p);

long hasColdPart(long *p, long n) {
	long sum = 0;
	for (long i = 0; i < n; i++) {
		sum += other(p, i);
		if (sum == 77) {
			rare(p);
			sum += other(p, sum) + n;
			rare(p + 1);
		}
	}
	return sum;
}
