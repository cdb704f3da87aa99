// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// rowFiles are looked for where Debian has them, and other systems.
var rowFiles = []string{"libm.so.6", "libc.so.6", "libstdc++.so.6"}

var libraryFolders = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib"}

// library is the path of a library.
func library(name string) (string, error) {
	for _, dir := range libraryFolders {
		if path, err := filepath.EvalSymlinks(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is in none of %v", name, libraryFolders)
}

// rows are all rows of libraries, as text. The largest is that of LLVM, where it is.
func rows(b *bench) (list []*contest, err error) {
	var files []string
	for i := range b.sizes(0, 1, 2) {
		path, err := library(rowFiles[i])
		if err != nil {
			return nil, err
		}
		files = append(files, path)
	}
	if found, _ := filepath.Glob("/usr/lib/x86_64-linux-gnu/libLLVM*.so.1"); len(found) > 0 && !b.short {
		files = append(files, found[0])
	}
	for _, path := range files {
		ours, err := ourRows(b.unwindd, path)
		if err != nil {
			return nil, err
		}
		c := &contest{input: fmt.Sprintf("%s, %d rows", filepath.Base(path), len(ours)), size: float64(len(ours))}
		c.ours = entry{tool: "unwindd", argv: []string{b.unwindd, "dump", "rows", path}}
		check := func(read func(string) ([]string, error)) func(string) (decision, error) {
			return func(output string) (decision, error) {
				theirs, err := read(output)
				return compared("rows", ours, theirs), err
			}
		}
		c.theirs = []entry{
			// It warns of sections that it does not know, and ends with 1 then.
			{tool: "readelf", argv: []string{"readelf", "--debug-dump=frames-interp", path}, exit: 1, check: check(byReadelf)},
			{tool: "llvm-dwarfdump", argv: []string{"llvm-dwarfdump-22", "--eh-frame", path}, check: check(byDwarfdump)},
		}
		list = append(list, c)
	}
	return list, nil
}

// ourRows are the rows of a file as PC and CFA, an expression as "exp".
func ourRows(unwindd, path string) (list []string, err error) {
	out, err := exec.Command(unwindd, "dump", "rows", "--format", "json", path).Output()
	if err != nil {
		return nil, fmt.Errorf("unwindd dump rows %s: %w", path, err)
	}
	var d struct {
		FDEs []struct{ Rows []struct{ PC, CFA string } }
	}
	if err := json.Unmarshal(out, &d); err != nil {
		return nil, err
	}
	for _, f := range d.FDEs {
		for _, r := range f.Rows {
			list = append(list, row(strings.TrimPrefix(r.PC, "0x"), r.CFA))
		}
	}
	return list, nil
}

// row is a row as all tools have it; pc is hexadecimal without 0x.
func row(pc, cfa string) string {
	if strings.HasPrefix(cfa, "expr:") || strings.HasPrefix(cfa, "DW_OP_") {
		cfa = "exp"
	}
	return strings.TrimLeft(pc, "0") + " " + strings.ToLower(cfa)
}

// Lines of readelf that begin entries. The lines of a section with other names end the
// rows.
var (
	readelfCIE = regexp.MustCompile(`^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE `)
	readelfFDE = regexp.MustCompile(`^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.`)
	readelfRow = regexp.MustCompile(`^([0-9a-f]{16}) (\S+) `)
)

// byReadelf reads rows of readelf, which prints none of an FDE that has its CIE's alone.
func byReadelf(output string) (list []string, err error) {
	cfas := map[string]string{} // of CIEs, by offset
	cie, start, cfa := "", "", ""
	end := func() {
		if start != "" {
			list = append(list, row(start, cfa))
		}
		start = ""
	}
	err = readLines(output, func(line string) {
		if m := readelfCIE.FindStringSubmatch(line); m != nil {
			end()
			cie = m[1]
		} else if m := readelfFDE.FindStringSubmatch(line); m != nil {
			end()
			cie, start, cfa = "", m[2], cfas[m[1]]
		} else if m := readelfRow.FindStringSubmatch(line); m != nil && cie != "" {
			cfas[cie] = m[2]
		} else if m != nil {
			start = ""
			list = append(list, row(m[1], m[2]))
		}
	})
	end()
	return list, err
}

// byDwarfdump reads rows of llvm-dwarfdump, whose CIEs' have no PC. It leaves out +0.
func byDwarfdump(output string) (list []string, err error) {
	err = readLines(output, func(line string) {
		pc, rest, isRow := strings.Cut(strings.TrimPrefix(line, "  0x"), ": CFA=")
		if !isRow || !strings.HasPrefix(line, "  0x") {
			return
		}
		cfa, _, _ := strings.Cut(rest, ":")
		if !strings.ContainsAny(cfa, "+-_") {
			cfa += "+0"
		}
		list = append(list, row(pc, cfa))
	})
	return list, err
}

// fileSize is 0 of a file that is not there.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
