package rocprof

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/target/gpusamples"
	"github.com/unwindd/unwindd/engine/target/jsontext"
)

// texts are the strings of a process that its records name by their indices.
type texts struct {
	process    *process
	operations [][]string // of APIs, by kind
	// instructions are the texts of those that were sampled, and sources their lines, by
	// inst_index.
	instructions []string
	sources      [][]gpusamples.Line
	// Each is kept once.
	known      map[string]string
	knownLines map[string][]gpusamples.Line
}

// read reads the strings.
func (t *texts) read(r *jsontext.Reader) error {
	t.known, t.knownLines = map[string]string{}, map[string][]gpusamples.Line{}
	return t.process.members(r, map[string]member{
		"buffer_records": {'[', func(r *jsontext.Reader) error {
			return r.Array(func(int) error { return t.readOperations(r) })
		}},
		"pc_sample_instructions": {'[', func(r *jsontext.Reader) error {
			t.instructions = nil
			return t.each(r, func(text []byte) error {
				kept, err := t.intern(text)
				t.instructions = append(t.instructions, kept)
				return err
			})
		}},
		"pc_sample_comments": {'[', func(r *jsontext.Reader) error {
			t.sources = nil
			return t.each(r, func(text []byte) error {
				lines, err := t.lines(text)
				t.sources = append(t.sources, lines)
				return err
			})
		}},
	})
}

// readOperations reads the names of an API's functions.
func (t *texts) readOperations(r *jsontext.Reader) error {
	var names []string
	if err := t.process.file.keep(48); err != nil {
		return t.process.file.leaveOut(r, err)
	}
	err := t.process.members(r, map[string]member{
		"operations": {'[', func(r *jsontext.Reader) error {
			return t.each(r, func(text []byte) error {
				name, err := t.intern(text)
				names = append(names, name)
				return err
			})
		}},
	})
	t.operations = append(t.operations, names)
	return err
}

// each gives the strings of an array to add; nil for what is none. What it cannot keep is a
// problem.
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
		if err := f.keep(40); err != nil {
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

// intern keeps a string once.
func (t *texts) intern(text []byte) (string, error) {
	if kept, ok := t.known[string(text)]; ok {
		return kept, nil
	}
	if err := t.process.file.keep(len(text) + 64); err != nil {
		return "", err
	}
	kept := string(text)
	t.known[kept] = kept
	return kept, nil
}

// separator stands between the lines of a comment.
const separator = " -> "

// lines are those of a comment: that of the instruction, and behind it those of the calls
// that were inlined, from the inside to the outside (CodeobjDecoderComponent).
func (t *texts) lines(comment []byte) ([]gpusamples.Line, error) {
	if len(comment) == 0 {
		return nil, nil
	}
	if lines, ok := t.knownLines[string(comment)]; ok {
		return lines, nil
	}
	var lines []gpusamples.Line
	for part := range strings.SplitSeq(string(comment), separator) {
		file, line := splitLine(part)
		file, err := t.intern([]byte(file))
		if err != nil {
			return nil, err
		}
		lines = append(lines, gpusamples.Line{File: file, Line: line})
	}
	if err := t.process.file.keep(len(comment) + 24*len(lines) + 96); err != nil {
		return nil, fmt.Errorf("pc_sample_comments: %w", err)
	}
	t.knownLines[string(comment)] = lines
	return lines, nil
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

// finish says that all strings were read.
func (t *texts) finish() { t.known, t.knownLines, t.operations = nil, nil, nil }

// operation is the name of an API's function; "" where it is not told.
func (t *texts) operation(kind, operation uint64) string {
	if kind >= uint64(len(t.operations)) || operation >= uint64(len(t.operations[kind])) {
		return ""
	}
	return t.operations[kind][operation]
}

// at are the text and the lines of an instruction.
func (t *texts) at(index uint64) (instruction string, source []gpusamples.Line) {
	if index < uint64(len(t.instructions)) {
		instruction = t.instructions[index]
	}
	if index < uint64(len(t.sources)) {
		source = t.sources[index]
	}
	return instruction, source
}
