// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/pe"
	"fmt"
	"os"
	"os/exec"
	"slices"
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

// died is the answer for an address that a symbolizer died of, by a fault of its own.
const died = "no answer"

// ask has a symbolizer name addresses, and returns an answer for each. Where it dies of an address, it is
// asked for the others again, until it has died too often: then it gave none for the others, too.
func ask(addresses []uint64, argv ...string) (answers []string, err error) {
	const mostDeaths = 200
	for deaths := 0; len(answers) < len(addresses); deaths++ {
		if deaths == mostDeaths {
			return append(answers, slices.Repeat([]string{died}, len(addresses)-len(answers))...), nil
		}
		rest := addresses[len(answers):]
		var in, out, said bytes.Buffer
		for _, a := range rest {
			fmt.Fprintf(&in, "%#x\n", a)
		}
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &said
		err := cmd.Run()
		got := strings.Split(out.String(), "\n\n")
		got = got[:len(got)-1]
		answers = append(answers, got...)
		switch {
		case err == nil && len(got) == len(rest):
		case err == nil || cmd.ProcessState.Exited() || len(got) >= len(rest):
			return nil, fmt.Errorf("%s: %w, %d answers to %d addresses\n%.2000s", strings.Join(argv, " "), err, len(got), len(rest), said.Bytes())
		default:
			answers = append(answers, died)
		}
	}
	return answers, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
