// SPDX-License-Identifier: Apache-2.0

//go:build linux

package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/host"
)

// recordingOf is a recording of a host that ended at a moment.
func recordingOf(t *testing.T, hostname string, ended time.Time) *recording {
	t.Helper()
	name := filepath.Join(t.TempDir(), "perf.data")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w := perfdata.NewWriter(out, perfdata.WriterOptions{Event: "wall", Arch: host.Machine(), OSRelease: host.Release(), Hostname: hostname, ClockID: 1})
	w.Comm(1, 1, 1, "app", true)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(name, ended, ended); err != nil {
		t.Fatal(err)
	}
	f, err := perfdata.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &recording{file: f}
}

// TestFilesThatAreNotTheMappedOnes compares the executable of the test with mappings of other
// inodes and devices.
func TestFilesThatAreNotTheMappedOnes(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Stat(self, &st); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	dev := uint64(st.Dev) //nolint:unconvert // its type depends on the machine
	major, minor := unix.Major(dev), unix.Minor(dev)
	if major == 0 {
		t.Skip("the test's executable is on a file system without a device")
	}
	own, wantOther := uint32(generationOf(self)), "was that of the file which was mapped and is gone"
	if own == 0 {
		wantOther = "" // the file system does not tell
	}
	later, before := time.Now().Add(time.Hour), time.Unix(1e9, 0)
	for name, test := range map[string]struct {
		host                string
		ended               time.Time
		inode, generation   uint64
		major               uint32
		isChecked           bool // by a build ID of the header
		finder              object.Finder
		isUsed, wantChecked bool
		problem             string
	}{
		"the same":                                 {host, later, st.Ino, 0, major, false, object.Finder{}, true, true, ""},
		"written to since":                         {host, before, st.Ino, 0, major, false, object.Finder{}, true, false, ""},
		"another file with the inode":              {host, later, st.Ino, uint64(^own), major, false, object.Finder{}, own == 0, own == 0, wantOther},
		"with the generation of the inode":         {host, later, st.Ino, uint64(own), major, false, object.Finder{}, true, true, ""},
		"another inode":                            {host, later, st.Ino + 1, 0, major, false, object.Finder{}, false, false, "it is another file than was mapped"},
		"whose build ID perf took at the path":     {host, later, st.Ino + 1, 0, major, true, object.Finder{}, false, false, "it is another file than was mapped"},
		"replaced by one of the same build":        {host, before, st.Ino + 1, 0, major, true, object.Finder{}, true, true, ""},
		"another device":                           {host, later, st.Ino + 1, 0, major + 1, false, object.Finder{}, false, false, "it is another file than was mapped"},
		"another device, of a boot before":         {host, before, st.Ino + 1, 0, major + 1, false, object.Finder{}, true, false, "it may be another file"},
		"the inode on another device":              {host, later, st.Ino, 0, major + 1, false, object.Finder{}, true, false, ""},
		"another machine":                          {"not-" + host, later, st.Ino + 1, 0, major, false, object.Finder{}, true, false, ""},
		"no inode, as there is a build ID instead": {host, later, 0, 0, 0, true, object.Finder{}, true, true, ""},
		"beneath a directory that was named":       {host, later, st.Ino + 1, 0, major, false, object.Finder{Sysroot: "/somewhere"}, true, false, ""},
		"given as the executable":                  {host, later, st.Ino + 1, 0, major, false, object.Finder{Exe: self}, true, false, ""},
		"given as a module":                        {host, later, st.Ino + 1, 0, major, false, object.Finder{Provided: map[string]string{filepath.Base(self): self}}, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := recordingOf(t, test.host, test.ended)
			o, err := object.Open(self)
			if err != nil {
				t.Fatal(err)
			}
			m := &perfdata.Mapping{Path: self, Inode: test.inode, Generation: test.generation, Major: test.major, Minor: minor}
			found := r.checkMapped(&test.finder, m, object.Found{Object: o, Path: self, Checked: test.isChecked, Problem: "could not be checked"})
			if found.Object != nil {
				defer found.Object.Close()
			}
			if (found.Object != nil) != test.isUsed || found.Checked != test.wantChecked {
				t.Errorf("used %v, checked %v: %s", found.Object != nil, found.Checked, found.Problem)
			}
			if text := strings.Join(r.problems, "\n"); !strings.Contains(text, test.problem) || test.problem == "" && text != "" {
				t.Errorf("problems %q, expected %q", text, test.problem)
			}
		})
	}
}
