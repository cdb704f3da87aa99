// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/pe"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// span is code from Start up to, but not including, End.
type span struct{ start, end uint64 }

// codeOf returns the code of an image: its base, and the sections that are executed.
func codeOf(path string) (base uint64, code []span, err error) {
	f, err := pe.Open(path)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	switch h := f.OptionalHeader.(type) {
	case *pe.OptionalHeader32:
		base = uint64(h.ImageBase)
	case *pe.OptionalHeader64:
		base = h.ImageBase
	}
	for _, s := range f.Sections {
		if s.Characteristics&pe.IMAGE_SCN_MEM_EXECUTE != 0 {
			start := base + uint64(s.VirtualAddress)
			code = append(code, span{start, start + uint64(s.VirtualSize)})
		}
	}
	return base, code, nil
}

// addressesOf lists at most some addresses of code, evenly.
func addressesOf(code []span, most uint64) (list []uint64) {
	all := uint64(0)
	for _, s := range code {
		all += s.end - s.start
	}
	step := max(1, (all+most-1)/most)
	for _, s := range code {
		for a := s.start; a < s.end; a += step {
			list = append(list, a)
		}
	}
	return list
}

// ask has a symbolizer name addresses, and returns an answer for each.
func ask(addresses []uint64, argv ...string) ([]string, error) {
	var in bytes.Buffer
	for _, a := range addresses {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	var out, said bytes.Buffer
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%.2000s", strings.Join(argv, " "), err, said.Bytes())
	}
	answers := strings.Split(strings.TrimSuffix(out.String(), "\n\n"), "\n\n")
	if len(answers) != len(addresses) {
		return nil, fmt.Errorf("%s: %d answers to %d addresses", strings.Join(argv, " "), len(answers), len(addresses))
	}
	return answers, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
