// SPDX-License-Identifier: Apache-2.0

package rocprof

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
)

// texts are the strings of a process, to which its records refer by index.
type texts struct {
	process    *process
	operations [][]string // of APIs, by kind
	// instructions are the texts of sampled instructions, and sources their lines, by
	// inst_index: indices of texts and lines, as many are equal.
	instructions, sources []int32
	texts                 []string
	lines                 [][]gpusamples.Line
	// The indices in texts by text, and in lines by comment.
	knownTexts, knownLines map[string]int32
	kept                   int
}

// account counts bytes of strings, which leave some of the file's bound for the data behind
// them.
func (t *texts) account(n int) error {
	if most := t.process.file.maxKept / 2; n > most-t.kept {
		return fmt.Errorf("there are more than %d bytes of strings", most)
	}
	t.kept += n
	return t.process.file.account(n)
}

// read reads the strings.
func (t *texts) read(r *jsontext.Reader) error {
	t.knownTexts, t.knownLines = map[string]int32{}, map[string]int32{}
	return t.process.members(r, map[string]member{
		"buffer_records": {'[', func(r *jsontext.Reader) error {
			return r.Array(func(int) error { return t.readOperations(r) })
		}},
		"pc_sample_instructions": {'[', func(r *jsontext.Reader) error {
			t.instructions = nil
			return t.each(r, func(text []byte) error {
				i, err := t.index(text)
				t.instructions = append(t.instructions, i)
				return err
			})
		}},
		"pc_sample_comments": {'[', func(r *jsontext.Reader) error {
			t.sources = nil
			return t.each(r, func(text []byte) error {
				i, err := t.linesIndex(text)
				t.sources = append(t.sources, i)
				return err
			})
		}},
	})
}

// readOperations reads the names of an API's functions.
func (t *texts) readOperations(r *jsontext.Reader) error {
	var names []string
	if err := t.account(48); err != nil {
		return t.process.file.leaveOut(r, err)
	}
	err := t.process.members(r, map[string]member{
		"operations": {'[', func(r *jsontext.Reader) error {
			return t.each(r, func(text []byte) error {
				i, err := t.index(text)
				if err == nil {
					names = append(names, t.texts[i])
				}
				return err
			})
		}},
	})
	t.operations = append(t.operations, names)
	return err
}

// each calls add for the strings of an array, with nil for other elements. An error of add
// is a problem.
func (t *texts) each(r *jsontext.Reader, add func(text []byte) error) error {
	f := t.process.file
	isFull := false
	return r.Array(func(int) error {
		raw, err := r.Raw()
		if err != nil {
			return err
		}
		f.passed(r.At)
		if isFull {
			return nil
		}
		text, err := textOf(raw)
		if err != nil {
			t.process.problem("strings: %v: it is left out", err)
		}
		if err := t.account(16); err != nil {
			isFull = true
			t.process.problem("strings: %v: the others are left out", err)
			return nil
		}
		if err := add(text); err != nil {
			isFull = true
			t.process.problem("strings: %v: the others are left out", err)
		}
		return nil
	})
}

// index returns the index of a string in texts; -1 where there are too many.
func (t *texts) index(text []byte) (int32, error) {
	if i, ok := t.knownTexts[string(text)]; ok {
		return i, nil
	}
	if err := t.account(len(text) + 96); err != nil {
		return -1, err
	}
	i := int32(len(t.texts)) //nolint:gosec // bounded by keep
	t.texts = append(t.texts, string(text))
	t.knownTexts[t.texts[i]] = i
	return i, nil
}

// separator separates the lines of a comment.
const separator = " -> "

// linesIndex returns the index in lines of a comment's lines: first the instruction's, then
// the lines of the inlined calls, from the inside to the outside (CodeobjDecoderComponent);
// -1 where there are none, or too many.
func (t *texts) linesIndex(comment []byte) (int32, error) {
	if len(comment) == 0 {
		return -1, nil
	}
	if i, ok := t.knownLines[string(comment)]; ok {
		return i, nil
	}
	if err := t.account(len(comment) + 24*(1+bytes.Count(comment, []byte(separator))) + 128); err != nil {
		return -1, err
	}
	var lines []gpusamples.Line
	for part := range strings.SplitSeq(string(comment), separator) {
		file, line := splitLine(part)
		name, err := t.index([]byte(file))
		if err != nil {
			return -1, err
		}
		lines = append(lines, gpusamples.Line{File: t.texts[name], Line: line})
	}
	i := int32(len(t.lines)) //nolint:gosec // bounded by keep
	t.lines = append(t.lines, lines)
	t.knownLines[string(comment)] = i
	return i, nil
}

// splitLine splits FILE:LINE. Line is 0 where it is not there, and in FILE:?.
func splitLine(text string) (file string, line int) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return text, 0
	}
	if text[i+1:] == "?" {
		return text[:i], 0
	}
	n, err := strconv.ParseUint(text[i+1:], 10, 31)
	if err != nil {
		return text, 0
	}
	return text[:i], int(n)
}

// finish frees the memory that is needed only while strings are read.
func (t *texts) finish() { t.knownTexts, t.knownLines, t.operations = nil, nil, nil }

// operation returns the name of an API's function; "" where it is unknown.
func (t *texts) operation(kind, operation uint32) string {
	if int(kind) >= len(t.operations) || int(operation) >= len(t.operations[kind]) {
		return ""
	}
	return t.operations[kind][operation]
}

// instruction returns the text and the lines of an instruction.
func (t *texts) instruction(index uint64) (instruction string, source []gpusamples.Line) {
	if index < uint64(len(t.instructions)) && t.instructions[index] >= 0 {
		instruction = t.texts[t.instructions[index]]
	}
	if index < uint64(len(t.sources)) && t.sources[index] >= 0 {
		source = t.lines[t.sources[index]]
	}
	return instruction, source
}
