// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Pages that were given back are in memory no more, and are read again.
func TestPagesAreGivenBack(t *testing.T) {
	path, err := filepath.Abs("../../../../examples/crash/server.core")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := bytes.Clone(c.mapping.Data())
	if resident(t, path) == "0 kB" {
		t.Error("nothing of the core is in memory after it was read")
	}
	c.ReleasePages()
	if rss := resident(t, path); rss != "0 kB" {
		t.Errorf("%s of the core are in memory", rss)
	}
	if !bytes.Equal(before, c.mapping.Data()) {
		t.Error("the core has other bytes than before")
	}
	(&Core{}).ReleasePages() // bytes in memory
}

// resident is how much of a mapped file is in memory.
func resident(t *testing.T, path string) string {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	_, of, ok := strings.Cut(string(maps), path+"\n")
	_, rss, hasRSS := strings.Cut(of, "\nRss:")
	if !ok || !hasRSS {
		t.Fatalf("%s is not mapped", path)
	}
	rss, _, _ = strings.Cut(rss, "\n")
	return strings.TrimSpace(rss)
}
