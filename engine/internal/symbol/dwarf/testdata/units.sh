#!/bin/sh
# Makes a program of many units in the folder that it runs in: whole, and zlib and zstd
# with the debug sections packed.
set -eu
for unit in $(seq 0 23); do
	awk -v i="$unit" 'BEGIN {
		printf "struct s%d { int field%d[%d]; };\n", i, i, i + 1
		for (j = 0; j < 40; j++) {
			printf "static inline int inner_%d_%d(struct s%d *p, int n) { return p->field%d[n %% %d] + n * %d; }\n", i, j, i, i, i + 1, j
			printf "__attribute__((noinline)) int outer_%d_%d(struct s%d *p, int n) {\n\tint sum = 0;\n", i, j, i
			printf "\tfor (int i = 0; i < n; i++)\n\t\tsum += inner_%d_%d(p, i) ^ %d;\n\treturn sum;\n}\n", i, j, i * j
		}
		if (i == 0)
			print "int main(void) { return 0; }"
	}' >"unit$unit.c"
done
gcc -g -O1 -finline-functions -o whole unit?.c unit??.c
for kind in zlib zstd; do
	llvm-objcopy-22 --compress-debug-sections=$kind whole $kind
done
