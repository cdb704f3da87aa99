// SPDX-License-Identifier: Apache-2.0

package house

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	holderName = regexp.MustCompile("`(attack )?([A-Za-z0-9_-]+)`")
	testOfGo   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	// An attack of the rig is a row of a table, and its name is the first word of it.
	attackOnServer = regexp.MustCompile(`(?m)^\t(?:\{name: |upload\()"([a-z0-9-]+)", `)
	attackOnFleet  = regexp.MustCompile(`(?m)^\t\t\{"([a-z0-9-]+)", func\(`)
)

// holders are the names of all tests of Go, and of all attacks of the rig.
func holders(t *testing.T) (tests, attacks map[string]bool) {
	t.Helper()
	tests, attacks = map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		isRig := strings.Contains(filepath.ToSlash(path), ".ci/peers/attacks/")
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") && !isRig {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range testOfGo.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		if isRig {
			for _, m := range attackOnServer.FindAllStringSubmatch(string(text), -1) {
				attacks[m[1]] = true
			}
			for _, m := range attackOnFleet.FindAllStringSubmatch(string(text), -1) {
				attacks["fleet-"+m[1]] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests, attacks
}

// claims are the rows of the tables of a document whose second column is "held by".
func claims(text string) (rows [][2]string) {
	isHeld := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		switch {
		case !strings.HasPrefix(line, "|"):
			isHeld = false
		case line == "| claim | held by |":
			isHeld = true
		case isHeld && !strings.HasPrefix(line, "|---"):
			rows = append(rows, [2]string{strings.TrimSpace(cells[0]), strings.TrimSpace(strings.Join(cells[1:], " | "))})
		}
	}
	return rows
}

// TestClaimsOfSecurityAreHeld: each claim of docs/security.md names tests and attacks that there
// are, and each attack holds a claim.
func TestClaimsOfSecurityAreHeld(t *testing.T) {
	text, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, attacks := holders(t)
	if len(attacks) < 40 {
		t.Fatalf("the rig has the attacks %v", attacks)
	}
	rows := claims(string(text))
	if len(rows) < 50 {
		t.Fatalf("%d claims", len(rows))
	}
	for _, row := range rows {
		names := holderName.FindAllStringSubmatch(row[1], -1)
		if len(names) == 0 {
			t.Errorf("nothing holds the claim %q", row[0])
		}
		for _, n := range names {
			list := tests
			if n[1] != "" {
				list = attacks
			}
			if !list[n[2]] {
				t.Errorf("%q: there is no %s%s", row[0], n[1], n[2])
			}
		}
	}
	for name := range attacks {
		if !slices.ContainsFunc(rows, func(row [2]string) bool { return strings.Contains(row[1], "`attack "+name+"`") }) {
			t.Errorf("the attack %s holds no claim", name)
		}
	}
}
