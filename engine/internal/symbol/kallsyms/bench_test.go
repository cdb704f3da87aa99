// SPDX-License-Identifier: Apache-2.0

package kallsyms

import (
	"os"
	"strings"
	"testing"
)

func BenchmarkRead(b *testing.B) {
	text, err := os.ReadFile("/proc/kallsyms")
	if err != nil {
		b.Skip(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := read("kallsyms", strings.NewReader(string(text))); err != nil {
			b.Fatal(err)
		}
	}
}
