// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// assemble is a module by spirv-as.
func assemble(t testing.TB, text string) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.spvasm"), filepath.Join(dir, "out.spv")
	write(t, in, []byte(text))
	oracle.Run(t, "spirv-as", "--target-env", "spv1.4", "-o", out, in)
	return read(t, out)
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// source is a file of testdata.
func source(t testing.TB, name string) string {
	t.Helper()
	return string(read(t, filepath.Join("testdata", name)))
}

// parse reads a module without problems.
func parse(t testing.TB, name string, data []byte) *Module {
	t.Helper()
	m, err := Read(name, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.Problems() {
		t.Error(p)
	}
	return m
}

// parseText assembles and reads a module.
func parseText(t testing.TB, text string) *Module {
	t.Helper()
	return parse(t, "module", assemble(t, text))
}

// words are those of a little-endian module.
func words(b []byte) []uint32 {
	w := make([]uint32, len(b)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return w
}

// module is words as a file.
func module(w []uint32, order binary.AppendByteOrder) []byte {
	var b []byte
	for _, x := range w {
		b = order.AppendUint32(b, x)
	}
	return b
}

// instructions are those of a module, each its words.
func instructions(w []uint32) [][]uint32 {
	var list [][]uint32
	for at := headerWords; at < len(w); at += int(w[at] >> 16) {
		list = append(list, w[at:at+int(w[at]>>16)])
	}
	return list
}

// join makes a module of a header and instructions.
func join(header []uint32, list [][]uint32) []uint32 {
	w := append([]uint32(nil), header[:headerWords]...)
	for _, i := range list {
		w = append(w, i...)
	}
	return w
}

// chain is the functions and lines of a position, innermost first:
// "inner 6:32 < outer 7 < scale 8".
func chain(p *symbol.Position) string {
	var parts []string
	for i := range p.Frames {
		f := &p.Frames[i]
		name := f.Name
		if p.Scopes[i] == "" {
			name = "?"
		}
		parts = append(parts, strings.TrimSpace(name+" "+lineText(f)))
	}
	return strings.Join(parts, " < ")
}

func lineText(f *trace.Symbol) string {
	switch {
	case f.Line == 0:
		return ""
	case f.Column == 0:
		return idText(uint32(f.Line))[1:]
	}
	return idText(uint32(f.Line))[1:] + ":" + idText(uint32(f.Column))[1:]
}
