// SPDX-License-Identifier: Apache-2.0

package llvmir

import "testing"

// The module of shapes.cpp, optimized: everything that dump prints.
func BenchmarkEverything(b *testing.B) {
	list := samples(b)
	var s *sample
	for i := range list {
		if s == nil || len(list[i].text) > len(s.text) {
			s = &list[i]
		}
	}
	b.SetBytes(int64(len(s.text)))
	for b.Loop() {
		m, err := Parse(s.name, s.text)
		if err != nil {
			b.Fatal(err)
		}
		for range m.Records() {
		}
		for range m.Positions() {
		}
		m.Variables()
	}
}
