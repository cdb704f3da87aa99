// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// elfutilsSource, on the site that apt is set up for, has a cubin of CUDA 11.2, and the rows that elfutils has of it, with names.
const elfutilsSource = "pool/main/e/elfutils/elfutils_0.188.orig.tar.bz2"

var (
	elfutilsRow  = regexp.MustCompile(`^([0-9a-f]+): (.*):(\d+):\d+: is_stmt.* end_seq:(yes|no)`)
	elfutilsCall = regexp.MustCompile(`^ +(\S+) inlined at (.*):(\d+)$`)
)

// elfutils compares with the answers of elfutils' own test: every row that has code, each inlined
// function by its name.
func (p *peer) elfutils() error {
	cubin, isChosen := p.file("elfutils-sm_80")
	if !isChosen {
		return nil
	}
	const fetch = `cd "$1" && site=$(apt-get indextargets --format '$(SITE)' 'Component: main' | grep debian$ | head -n 1) && python3 -c 'import sys, urllib.request; urllib.request.urlretrieve(sys.argv[1], "elfutils.tar.bz2")' "$site/$2" &&
		tar xjf elfutils.tar.bz2 --strip-components=2 elfutils-0.188/tests/testfile_nvidia_linemap.bz2 elfutils-0.188/tests/run-nvidia-extended-linemap-libdw.sh &&
		bunzip2 -f testfile_nvidia_linemap.bz2 && mv testfile_nvidia_linemap "$3"`
	if err := cost.Run(p.dir, "sh", "-c", fetch, "sh", p.dir, elfutilsSource, cubin); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(p.dir, "run-nvidia-extended-linemap-libdw.sh"))
	if err != nil {
		return err
	}
	want, rows := answers(string(text))
	rendered, err := exec.Command(p.unwindd, "dump", "lines", cubin).Output()
	if err != nil {
		return err
	}
	c := &count{files: 1, functions: 1, instructions: rows}
	p.counts["elfutils' test"] = c
	var got []string
	for line := range strings.Lines(string(rendered)) {
		if strings.HasPrefix(line, "0x") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	for i := range max(len(want), len(got)) {
		ours, theirs := "", ""
		if i < len(got) {
			ours = got[i]
		}
		if i < len(want) {
			theirs = want[i]
		}
		if ours != theirs {
			c.different = append(c.different, fmt.Sprintf("row %d: %q, elfutils %q", i, ours, theirs))
		}
	}
	return p.compare("elfutils' test", cubin, true)
}

// answers are the rows of the test as `unwindd dump lines` writes them. Rows at the address of the
// next one have no code.
func answers(text string) (list []string, rows int) {
	type answer struct{ address, text string }
	var all []answer
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := elfutilsRow.FindStringSubmatch(line); m != nil {
			all = append(all, answer{m[1], fmt.Sprintf("%s:%s", m[2], m[3])})
		} else if m := elfutilsCall.FindStringSubmatch(line); m != nil && len(all) > 0 {
			name := m[1]
			if name == "_Z1aPiS_S_" {
				name = "a(int*, int*, int*)"
			}
			last := &all[len(all)-1]
			last.text += fmt.Sprintf(" %s <- %s:%s", name, m[2], m[3])
		}
	}
	for i := 0; i+1 < len(all); i++ {
		if all[i].address != all[i+1].address {
			list = append(list, fmt.Sprintf("0x%04x-0x%04x  %s kernel", number(all[i].address), number(all[i+1].address), all[i].text))
		}
	}
	return list, len(all)
}
