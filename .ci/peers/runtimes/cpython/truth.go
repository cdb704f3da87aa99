// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// frame is a frame of Python.
type frame struct {
	qualified string // "": unknown
	function  string
	file      string
	line      int // 0: unknown
	column    int // 0: unknown
}

func (f frame) String() string {
	name := f.qualified
	if name == "" {
		name = f.function
	}
	return fmt.Sprintf("%s %s:%d:%d", name, f.file, f.line, f.column)
}

// thread is a thread with its frames, innermost first.
type thread struct {
	native  int // ID; 0: unknown
	ident   uint64
	name    string
	current bool // the one that wrote the truth
	frames  []frame
	isCut   bool // there are further frames
}

// truth has the words of the process about itself.
type truth struct {
	program []thread // by the interpreter
	dump    []thread // by faulthandler
}

// readTruth reads what a process wrote before it ended with a core.
func readTruth(dir, core string) (*truth, error) {
	t := &truth{}
	said, err := os.ReadFile(filepath.Join(dir, "truth"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if t.program, err = parts(string(said)); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, "dump"))
	if err != nil {
		return nil, err
	}
	if strings.Count(string(text), "Current thread ") == 1 {
		t.dump = dumped(string(text))
	}
	if strings.Count(string(said), "\n") > 1 {
		for i := range t.dump {
			t.dump[i].isCut = true // faulthandler has the frames of one interpreter
		}
	}
	if len(t.program) == 0 && len(t.dump) == 0 {
		return nil, errors.New("the process said nothing of itself")
	}
	ids, err := identities(core)
	if err != nil {
		return nil, err
	}
	for _, list := range [][]thread{t.program, t.dump} {
		for i := range list {
			if id, isKnown := ids[list[i].ident]; isKnown {
				list[i].native = id
			}
		}
	}
	return t, nil
}

// parts reads the parts that interpreters of a process wrote. Frames of a later one are further in.
func parts(text string) (list []thread, err error) {
	for line := range strings.Lines(text) {
		var part struct {
			Threads []struct {
				Ident   uint64
				Native  int
				Name    string
				Current bool
				Frames  [][5]any
			}
		}
		if err := json.Unmarshal([]byte(line), &part); err != nil {
			return nil, err
		}
		for _, t := range part.Threads {
			one := thread{native: t.Native, ident: t.Ident, name: t.Name, current: t.Current}
			for _, f := range t.Frames {
				one.frames = append(one.frames, frame{text0(f[0]), text0(f[1]), text0(f[2]), number(f[3]), number(f[4])})
			}
			if at := slices.IndexFunc(list, func(o thread) bool { return o.ident == t.Ident }); at >= 0 {
				list[at].frames[0].column = 0 // it calls one function for the truth, and the interpreter by another one
				list[at].frames = append(one.frames, list[at].frames...)
			} else {
				list = append(list, one)
			}
		}
	}
	return list, nil
}

func text0(v any) string { s, _ := v.(string); return s }
func number(v any) int   { f, _ := v.(float64); return int(f) }

var (
	dumpThread = regexp.MustCompile(`^(Current thread|Thread) 0x([0-9a-f]+)`)
	dumpFrame  = regexp.MustCompile(`^  File (?:"(.*)"|\?\?\?), line ([0-9]+|\?\?\?) in (.*)$`)
)

// dumped reads faulthandler's text.
func dumped(text string) (list []thread) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := dumpThread.FindStringSubmatch(line); m != nil {
			ident, _ := strconv.ParseUint(m[2], 16, 64)
			list = append(list, thread{ident: ident, current: m[1] != "Thread"})
			continue
		}
		if len(list) == 0 {
			continue
		}
		t := &list[len(list)-1]
		if m := dumpFrame.FindStringSubmatch(line); m != nil {
			number, _ := strconv.Atoi(m[2])
			t.frames = append(t.frames, frame{function: m[3], file: m[1], line: number})
		} else if strings.HasPrefix(line, "  ...") || strings.HasPrefix(line, "  <invalid frame>") || strings.HasPrefix(line, "  <truncated") {
			t.isCut = true
		}
		if strings.HasPrefix(line, "Extension modules:") || strings.HasPrefix(line, "Current thread's C stack") {
			break
		}
	}
	return list
}

// escaped is a text as faulthandler writes it.
func escaped(text string) string {
	var b strings.Builder
	for n, r := range []rune(text) {
		if n == 500 {
			return b.String() + "..."
		}
		switch {
		case r >= ' ' && r < 127:
			b.WriteRune(r)
		case r < 256:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 65536:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// identities are the IDs of a core's threads by what pthread_self returns in them: the base of FS.
func identities(path string) (map[uint64]int, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ids := map[uint64]int{}
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE {
			continue
		}
		data := make([]byte, p.Filesz)
		if _, err := p.ReadAt(data, 0); err != nil {
			return nil, err
		}
		for len(data) >= 12 {
			nameSize, size, kind := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:]), binary.LittleEndian.Uint32(data[8:])
			start := 12 + int(nameSize+3)&^3
			end := start + int(size+3)&^3
			if end > len(data) {
				break
			}
			const status, id, fsBase = 1, 32, 112 + 21*8
			if kind == status && size > fsBase+8 {
				ids[binary.LittleEndian.Uint64(data[start+fsBase:])] = int(binary.LittleEndian.Uint32(data[start+id:]))
			}
			data = data[end:]
		}
	}
	return ids, nil
}
