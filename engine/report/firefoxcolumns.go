// SPDX-License-Identifier: Apache-2.0

package report

import (
	"path"
	"strconv"
)

// writeShared writes the tables that all threads share, each as an object of columns.
func (f *firefoxWriter) writeShared() {
	t := f.tables
	f.put("{\"stackTable\":{")
	f.writeStacks()
	f.put("},\n\"frameTable\":{")
	frames := func(name string, null int64, number func(*firefoxFrame) int64) {
		f.column(name, len(t.frames), func(text []byte, i int) []byte { return appendOr(text, number(&t.frames[i]), null) })
	}
	const never = -2
	frames("address", never, func(r *firefoxFrame) int64 { return r.address })
	frames("lib", never, func(r *firefoxFrame) int64 { return int64(r.lib) })
	frames("inlineDepth", never, func(r *firefoxFrame) int64 { return int64(r.depth) })
	frames("category", never, func(r *firefoxFrame) int64 { return int64(r.category) })
	frames("subcategory", never, func(r *firefoxFrame) int64 { return int64(r.subcategory) })
	frames("func", never, func(r *firefoxFrame) int64 { return int64(r.function) })
	frames("nativeSymbol", -1, func(r *firefoxFrame) int64 { return int64(r.symbol) })
	frames("innerWindowID", never, func(*firefoxFrame) int64 { return 0 })
	frames("line", 0, func(r *firefoxFrame) int64 { return int64(r.line) })
	frames("column", 0, func(r *firefoxFrame) int64 { return int64(r.column) })
	f.nulls("originalLocation", len(t.frames))
	f.length(len(t.frames))
	f.put("},\n\"funcTable\":{")
	f.writeFunctions()
	f.put("},\n\"resourceTable\":{")
	f.column("name", len(t.resources.list), func(text []byte, i int) []byte {
		return strconv.AppendInt(text, int64(t.resources.list[i]), 10)
	})
	f.nulls("host", len(t.resources.list))
	f.constant("type", "1", len(t.resources.list)) // ResourceType.Library
	f.length(len(t.resources.list))
	f.put("},\n\"nativeSymbols\":{")
	symbols := func(name string, number func(*firefoxSymbol) int64) {
		f.column(name, len(t.symbols.list), func(text []byte, i int) []byte {
			return strconv.AppendInt(text, number(&t.symbols.list[i]), 10)
		})
	}
	symbols("libIndex", func(s *firefoxSymbol) int64 { return int64(s.lib) })
	symbols("address", func(s *firefoxSymbol) int64 { return int64(s.address) }) //nolint:gosec // 32 bits
	symbols("name", func(s *firefoxSymbol) int64 { return int64(s.name) })
	f.nulls("functionSize", len(t.symbols.list))
	f.length(len(t.symbols.list))
	f.put("},\n\"sources\":{")
	f.writeSources()
	f.put("},\n\"sourceLocationTable\":{\"source\":[],\"line\":[],\"column\":[],\"length\":0},\n\"stringArray\":[")
	for i, s := range t.strings.list {
		if i > 0 {
			f.put(",")
		}
		f.put(quoted(s))
	}
	f.put("]}")
}

// writeStacks writes the tree of stacks: the stacks of the profile, with a row for each
// inlined call, and then the special ones.
func (f *firefoxWriter) writeStacks() {
	t := f.tables
	rows := func(name string, ofCall func(stack, call int) int64, special func(*firefoxStack) int32) {
		f.put(`"`, name, `":[`)
		var text []byte
		number := func(n int64) {
			_, _ = f.Write(strconv.AppendInt(text, n, 10))
			text = append(text[:0], ',') // before the next one
		}
		for i, last := range t.nodes {
			if last < 0 {
				continue
			}
			for call := range t.r.functionOf[t.r.p.Stacks[i].Frame] {
				number(ofCall(i, call))
			}
		}
		for i := range t.special {
			number(int64(special(&t.special[i])))
		}
		f.put("],")
	}
	rows("frame", func(stack, call int) int64 {
		return int64(t.rowOf[t.r.p.Stacks[stack].Frame]) + int64(call)
	}, func(s *firefoxStack) int32 { return s.frame })
	rows("prefixOffset", func(stack, call int) int64 {
		node := t.r.p.Stacks[stack]
		switch {
		case call > 0:
			return 1
		case node.Caller == 0:
			return 0
		}
		first := t.nodes[stack] - int32(len(t.r.functionOf[node.Frame])) + 1 //nolint:gosec // of one frame
		return int64(first - t.nodes[node.Caller])
	}, func(s *firefoxStack) int32 { return s.offset })
	f.length(int(t.count) + len(t.special))
}

func (f *firefoxWriter) writeFunctions() {
	t := f.tables
	n := len(t.functions)
	numbers := func(name string, number func(*profileFunction) int64, null int64) {
		f.column(name, n, func(text []byte, i int) []byte { return appendOr(text, number(&t.functions[i]), null) })
	}
	numbers("name", func(fn *profileFunction) int64 { return int64(t.strings.intern(fn.name)) }, -1)
	f.constant("isJS", "false", n)
	f.constant("relevantForJS", "false", n)
	numbers("resource", func(fn *profileFunction) int64 {
		if fn.module == "" {
			return -1
		}
		return int64(t.resources.intern(t.strings.intern(nameOfModule(fn.module))))
	}, -2)
	numbers("source", func(fn *profileFunction) int64 {
		if fn.file == "" {
			return -1
		}
		return int64(t.sources.intern(fn.file))
	}, -1)
	numbers("lineNumber", func(fn *profileFunction) int64 { return int64(fn.line) }, 0)
	f.nulls("columnNumber", n)
	f.nulls("originalLocation", n)
	f.length(n)
}

func (f *firefoxWriter) writeSources() {
	t := f.tables
	n := len(t.sources.list)
	f.nulls("id", n)
	f.column("filename", n, func(text []byte, i int) []byte {
		return strconv.AppendInt(text, int64(t.strings.intern(t.sources.list[i])), 10)
	})
	f.constant("startLine", "1", n)
	f.constant("startColumn", "1", n)
	f.nulls("sourceMapURL", n)
	f.nulls("content", n)
	f.length(n)
}

// nameOfModule is the module's name beside a function in the viewer.
func nameOfModule(file string) string { return path.Base(file) }

// column writes a column of a table, and a comma.
func (f *firefoxWriter) column(name string, n int, cell func(text []byte, i int) []byte) {
	f.put(`"`, name, `":[`)
	var text []byte
	for i := range n {
		text = text[:0]
		if i > 0 {
			text = append(text, ',')
		}
		_, _ = f.Write(cell(text, i))
	}
	f.put("],")
}

func (f *firefoxWriter) constant(name, value string, n int) {
	f.column(name, n, func(text []byte, _ int) []byte { return append(text, value...) })
}

func (f *firefoxWriter) nulls(name string, n int) { f.constant(name, "null", n) }

// length ends a table.
func (f *firefoxWriter) length(n int) { f.put(`"length":`, strconv.Itoa(n)) }

// appendOr appends a number, or null where it equals null.
func appendOr(text []byte, n, null int64) []byte {
	if n == null {
		return append(text, "null"...)
	}
	return strconv.AppendInt(text, n, 10)
}
