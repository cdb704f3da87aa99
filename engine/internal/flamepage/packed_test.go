// SPDX-License-Identifier: Apache-2.0

package flamepage

import (
	"bytes"
	"compress/flate"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write page.packed")

// TestPagesArePacked: page.packed has the files of the page as they are.
func TestPagesArePacked(t *testing.T) {
	var want strings.Builder
	for i, name := range []string{"page.html", "page.css", "data.js", "tree.js", "colors.js", "graph.js", "parts.js", "page.js"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if 0 < i && i < 3 {
			want.WriteString(separator)
		}
		want.Write(text)
	}
	if *update {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, want.String())
		_ = w.Close()
		if err := os.WriteFile("page.packed", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		packed = b.Bytes()
	}
	got, err := io.ReadAll(flate.NewReader(bytes.NewReader(packed)))
	if err != nil || string(got) != want.String() {
		t.Fatalf("page.packed is not of the files beside it (%v): write it with `go test ./engine/internal/flamepage -update`", err)
	}
}
