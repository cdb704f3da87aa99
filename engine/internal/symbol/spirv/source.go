// SPDX-License-Identifier: Apache-2.0

package spirv

import (
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// checksumPrefix begins the text of a DebugSource in which the LLVM/SPIR-V translator put a
// checksum, "//__CSK_MD5:HEX".
const checksumPrefix = "//__CSK_"

// readSources collects the source files of DebugSource and OpSource.
func (m *Module) readSources() {
	more := continued{Module: m, index: -1}
	for i := range m.records {
		switch r := &m.records[i]; r.Op {
		case DebugSource:
			more.begin(-1)
			if _, ok := m.byID[r.ID]; !ok {
				break
			}
			s := symbol.SourceFile{ID: idText(r.ID), Path: m.stringOf(r, "File")}
			if text, ok := r.id("Text"); ok {
				s.Text, s.HasText = m.strings[text], m.strings[text] != ""
			}
			s.Text, s.Checksum = cutChecksum(s.Text)
			s.HasText = s.HasText && (s.Text != "" || s.Checksum == "")
			if sum := m.stringOf(r, "ChecksumValue"); sum != "" {
				kind, _ := m.number(r, "ChecksumKind")
				name, _ := r.Set.enumText(ChecksumKind, kind)
				s.Checksum = name + ":" + sum
			}
			m.texts[r.ID] = len(m.sources)
			m.sources = append(m.sources, s)
			more.begin(len(m.sources) - 1)
		case DebugSourceContinued:
			if more.index < 0 {
				m.problem(r.Offset, "DebugSourceContinued without a DebugSource before")
				break
			}
			more.add(r.Offset, m.stringOf(r, "Text"))
		}
	}
	more.finish()
	m.readOpSources()
	for i := range m.sources {
		m.sources[i].Text = cutPreamble(m.sources[i].Text)
	}
	// A DebugSource without text has the text of the OpSource of its file.
	texts := map[string]string{}
	for _, s := range m.sources {
		if s.HasText {
			texts[s.Path] = s.Text
		}
	}
	for i := range m.sources {
		if s := &m.sources[i]; !s.HasText {
			s.Text, s.HasText = texts[s.Path], texts[s.Path] != ""
		}
	}
}

// continued puts a text together from many strings; all texts together have at most as many
// bytes as the module.
type continued struct {
	*Module
	text  strings.Builder
	used  int
	index int // of the source; -1: none
}

func (c *continued) begin(source int) {
	c.finish()
	c.index = source
	c.text.Reset()
	if source >= 0 {
		c.text.WriteString(c.sources[source].Text)
	}
}

func (c *continued) add(word uint32, s string) {
	if c.used += len(s); c.used > 4*len(c.words) {
		c.problem(word, "source text of %d bytes in parts, expected at most the %d of the module", c.used, 4*len(c.words))
		return
	}
	c.text.WriteString(s)
	c.sources[c.index].HasText = true
}

func (c *continued) finish() {
	if c.index >= 0 {
		c.sources[c.index].Text = c.text.String()
	}
}

// readOpSources reads every OpSource that names a file.
func (m *Module) readOpSources() {
	more := continued{Module: m, index: -1}
	defer more.finish()
	for word, total := uint32(headerWords), uint32(len(m.words)); word < total; {
		op, n := uint16(m.words[word]), m.words[word]>>16
		if n == 0 || n > total-word || op == opFunction {
			return
		}
		switch end := word + n; {
		case op == opSource && n >= 4:
			file := m.words[word+3]
			var text string
			if n > 4 {
				text = m.literal(word+4, end, "OpSource")
			}
			i, ok := m.texts[file]
			if !ok {
				i = len(m.sources)
				m.texts[file] = i
				m.sources = append(m.sources, symbol.SourceFile{ID: idText(file), Path: m.strings[file]})
			}
			if !m.sources[i].HasText {
				m.sources[i].Text, m.sources[i].HasText = text, n > 4
			}
			more.begin(i)
		case op == opSource:
			more.begin(-1)
		case op == opSourceContinued && more.index >= 0 && n >= 2:
			more.add(word, m.literal(word+1, end, "OpSourceContinued"))
		}
		word += n
	}
}

// cutChecksum cuts the checksum off the text of a DebugSource.
func cutChecksum(text string) (rest, checksum string) {
	sum, ok := strings.CutPrefix(text, checksumPrefix)
	if !ok {
		return text, ""
	}
	sum, rest, _ = strings.Cut(sum, "\n")
	return rest, sum
}

// preambleLine begins each line that glslang writes before the text of a source;
// preambleEnd is the line after which the source begins.
const (
	preambleLine = "// OpModuleProcessed "
	preambleEnd  = "#line 1\n"
)

// cutPreamble cuts off the lines that a compiler wrote before a source, so that line
// numbers are the file's.
func cutPreamble(text string) string {
	rest := text
	for strings.HasPrefix(rest, preambleLine) {
		_, rest, _ = strings.Cut(rest, "\n")
	}
	if source, ok := strings.CutPrefix(rest, preambleEnd); ok && len(rest) < len(text) {
		return source
	}
	return text
}

// Sources are the source files that the module names.
func (m *Module) Sources() []symbol.SourceFile { return m.sources }

// Macros are the macros of DebugMacroDef and DebugMacroUndef, in the module's order.
func (m *Module) Macros() []symbol.Macro {
	var list []symbol.Macro
	for i := range m.records {
		r := &m.records[i]
		macro := symbol.Macro{ID: idText(r.ID), Line: m.line(r, "Line")}
		if source, ok := r.id("Source"); ok {
			macro.File, _ = m.file(source)
		}
		switch r.Op {
		case DebugMacroDef:
			macro.Name, macro.Value = m.stringOf(r, "Name"), m.stringOf(r, "Value")
		case DebugMacroUndef:
			macro.IsUndef = true
			if d := m.target(r, "Macro"); d != nil && d.Op == DebugMacroDef {
				macro.Name = m.stringOf(d, "Name")
			}
		default:
			continue
		}
		list = append(list, macro)
	}
	return list
}
