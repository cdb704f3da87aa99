// SPDX-License-Identifier: Apache-2.0

// Command promises holds this tree against the last release, as docs/stability.md has it: the
// promised names of Go by apidiff, the protocols by buf's rules FILE and WIRE_JSON, and the JSON
// by its schemas. It ends with the status 1 where a program, a plugin or a caller that was made
// for that release would break.
//
//	go run ./promises [-base REF] [-buf PATH] [-tree DIR] [-packages PATH,...]
//	go run ./promises -write NAME
//
// The last release is the tag that internal/house/testdata/released/base names. A clone that
// lacks it (a shallow one) has the protocols, the schemas and a list of the names in that folder,
// which are used then. -write NAME writes the folder for a release NAME of this tree.
//
// Before v1.0.0 a name of Go may change or go where CHANGELOG.md has it, in backquotes, under
// the heading Breaking of its section Unreleased. Protocols and formats with a version may not.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/internal/house"
)

var (
	base     = flag.String("base", "", "hold against the commit or tag `REF`, in place of the last release")
	buf      = flag.String("buf", "buf", "run buf at `PATH`")
	top      = flag.String("tree", "../..", "look at the tree in `DIR`")
	packages = flag.String("packages", strings.Join(house.Promised, ","), "look at these packages, `PATH,...`")
	writes   = flag.String("write", "", "write what a release `NAME` of this tree promises")
)

func main() {
	flag.Parse()
	if *writes != "" {
		cost.Exit("promises", write(*top, *writes))
		return
	}
	c := &check{top: *top, base: *base, buf: *buf, packages: strings.Split(*packages, ",")}
	cost.Exit("promises", c.run())
}

// check looks at a tree.
type check struct {
	top      string // the tree
	base     string // "" is that of folder released
	buf      string // the executable
	packages []string
}

// broken is a change that breaks a promise.
type broken struct {
	name string // of Go, as sdk.Description.Name; "" where no note excuses it
	what string
}

// run prints each broken promise, and returns an error where there is one.
func (c *check) run() error {
	r, err := c.release()
	if err != nil {
		return err
	}
	defer r.remove()
	var found []broken
	for _, look := range []func(*release) ([]broken, error){c.names, c.protocols, c.documents} {
		more, err := look(r)
		if err != nil {
			return err
		}
		found = append(found, more...)
	}
	noted, err := notes(filepath.Join(c.top, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	isBroken := false
	for _, b := range found {
		if b.name != "" && r.mayBreak() && noted.have(b.name) {
			fmt.Printf("noted in CHANGELOG.md: %s\n", b.what)
			continue
		}
		fmt.Printf("breaks: %s\n", b.what)
		isBroken = true
	}
	if isBroken {
		return fmt.Errorf("this tree breaks what %s promises, as listed: undo that%s", r.name, r.advice())
	}
	fmt.Printf("%d packages, %d protocols and %d schemas have all that %s promises\n", len(c.packages), len(protos), len(schemas), r.name)
	return nil
}

// errNoRelease is the advice where the folder of the last release lacks a file.
var errNoRelease = errors.New("expected what `go run ./promises -write NAME` writes")

// released is the folder of what the last release promises.
func (c *check) released(name string) string {
	return filepath.Join(c.top, "internal/house/testdata/released", name)
}

// write writes the folder for a release of this tree.
func write(top, name string) error {
	c := &check{top: top}
	if err := mayBeCalled(c, name); err != nil {
		return err
	}
	files := map[string]string{"api.txt": "internal/house/testdata/api.txt"}
	for _, p := range protos {
		files[filepath.Base(p)] = p
	}
	for _, s := range schemas {
		files[filepath.Base(s.path)] = s.path
	}
	if err := os.MkdirAll(c.released(""), 0o755); err != nil {
		return err
	}
	for to, path := range files {
		text, err := os.ReadFile(filepath.Join(top, path))
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.released(to), text, 0o644); err != nil { //nolint:gosec // for everybody
			return err
		}
	}
	return os.WriteFile(c.released("base"), []byte(name+"\n"), 0o644) //nolint:gosec // for everybody
}
