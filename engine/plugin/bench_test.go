// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"strconv"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// BenchmarkStart is a process from nothing to its first answer, and its end.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		m, a := benchArch(b)
		if _, err := a.Disassemble(b.Context(), order("echo x")); err != nil {
			b.Fatal(err)
		}
		m.Close()
	}
}

// BenchmarkCall is one call across the process boundary, answer validated.
func BenchmarkCall(b *testing.B) {
	m, a := benchArch(b)
	defer m.Close()
	for _, n := range []int{1, 100} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			req := &sdk.FrameRulesRequest{}
			for range n {
				req.Functions = append(req.Functions, functionNamed("good").Functions...)
			}
			for b.Loop() {
				if _, err := a.FrameRules(b.Context(), nil, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchArch(b *testing.B) (*Manager, *Arch) {
	b.Helper()
	m, err := NewManager(Options{Self: self(b), Bundled: bundledTest(good)})
	if err != nil {
		b.Fatal(err)
	}
	a, err := m.Find("test-good")
	if err != nil {
		b.Fatal(err)
	}
	return m, a
}
